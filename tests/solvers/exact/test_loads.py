"""Loads of a placement are its period."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.data.topology import unit_devices
from situate.simulation.simulator import Simulator
from situate.solvers.exact.clock import Ticking
from situate.solvers.exact.loads import loads
from tests.oracle.problems import random_decision, random_problem
from tests.solvers.exact.solved import least, placed
from tests.solvers.families import RULES
from tests.solvers.programs import needs_ortools

pytestmark = needs_ortools


def _period(problem: Problem, placement: np.ndarray, period: float) -> float:
    placing = placed(problem, *unit_devices(problem, placement).tolist())
    durations = np.array([*(move.seconds for move in placing.moves), *problem.seconds.ravel()])
    clock = Ticking.until(period or 1.0, durations)
    most = placing.model.new_int_var(0, 2 * clock.horizon, "")
    for load in loads(placing, clock).values():
        placing.model.add(load <= most)
    return least(placing, most)[0] * clock.unit


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("seed", range(6))
def test_the_largest_load_is_the_period(seed, rules):
    drawn = dataclasses.replace(random_problem(seed), objective="throughput")
    problem = Problem(drawn.graph, drawn.cluster, "throughput", rules)
    decision = random_decision(problem, seed)
    schedule = Simulator(problem).schedule(decision.placement, decision.priority)
    period = schedule.period(problem)
    found = _period(problem, decision.placement, period)
    assert found <= period
    assert found == pytest.approx(period, rel=1e-4)
