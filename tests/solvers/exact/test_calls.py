"""Calls of a placement end when those of the simulator do."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.data.topology import unit_devices
from situate.simulation.atomic import schedule_calls
from situate.solvers.exact.calls import Calls
from situate.solvers.exact.clock import Ticking
from tests.oracle.problems import random_decision, random_problem
from tests.solvers.exact.solved import least, placed
from tests.solvers.programs import needs_ortools

pytestmark = needs_ortools


@pytest.mark.parametrize("seed", range(20))
def test_the_last_call_ends_with_the_step(seed):
    drawn = random_problem(seed)
    problem = Problem(drawn.graph, drawn.cluster, "time", "dnn-partitioning")
    placement = random_decision(problem, seed).placement
    makespan = schedule_calls(problem, placement).makespan
    if not np.isfinite(makespan) or not makespan:
        return
    placing = placed(problem, *unit_devices(problem, placement).tolist())
    durations = np.array([*(move.seconds for move in placing.moves), *problem.seconds.ravel()])
    clock = Ticking.until(makespan, durations)
    found = least(placing, Calls(placing, clock).makespan)[0] * clock.unit
    assert found <= makespan
    assert found == pytest.approx(makespan, rel=1e-4)
