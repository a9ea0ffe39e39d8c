"""The best plan is a whole guess."""

from __future__ import annotations

import numpy as np

from situate.data.problem import Problem
from situate.solvers.exact.clock import Ticking
from situate.solvers.exact.hints import hint_placement, hint_times
from situate.solvers.exact.installed import cp_model
from situate.solvers.exact.placing import Placing
from situate.solvers.exact.timing import Timing
from situate.solvers.search import Search
from tests.solvers.families import chain, devices
from tests.solvers.programs import needs_ortools

pytestmark = needs_ortools


def test_devices_transfers_and_starts_are_those_of_the_plan():
    problem = Problem(chain(3, size=4), devices(1, 2))
    found = Search(problem).offer(np.array([0, 1, 0], np.int32), np.arange(3, dtype=np.int32))
    cp = cp_model()
    placing = Placing(problem, cp.CpModel())
    clock = Ticking.until(found.value, np.array([1.0]))
    timing = Timing(placing, clock)
    hint_placement(placing, found)
    hint_times(placing, timing, clock, found)
    solver = cp.CpSolver()
    solver.parameters.fix_variables_to_their_hinted_value = True
    assert solver.status_name(solver.solve(placing.model)) in ("OPTIMAL", "FEASIBLE")
    assert [solver.value(start) for start in timing.start] == [0, 5, 11]
    sent = [arrival for arrival, received in placing.received.items() if solver.value(received)]
    assert sent == [(0, 1), (1, 0)]
