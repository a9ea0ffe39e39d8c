"""The bytes that ops hold when memory is fullest, and what that leaves, agree with the peaks."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.simulation.simulator import Simulator
from situate.solvers.auto.memory.liveness import orders_count, weights
from tests.oracle.problems import random_decision, random_problem
from tests.solvers.families import chain, devices


@pytest.mark.parametrize("rules", ["situate", "regal"])
def test_what_is_weighed_and_what_is_left_add_up_to_the_peak(rules: str) -> None:
    for seed in range(200):
        drawn = random_problem(seed)
        problem = Problem(drawn.graph, drawn.cluster, "throughput", RULES[rules])
        drawn_plan = random_decision(problem, seed)
        schedule = Simulator(problem).schedule(drawn_plan.placement, drawn_plan.priority)
        held, room = weights(problem, schedule)
        on_device = np.bincount(schedule.placement, held, minlength=problem.d)
        assert (held >= problem.persistent).all()
        assert (on_device <= schedule.peak).all()
        assert (problem.capacity - room + on_device == schedule.peak).all()


def test_an_op_holds_what_it_made_while_it_lives() -> None:
    """Each op of a chain makes 4 bytes: two tensors live at once, an input and an output."""
    problem = Problem(chain(5, size=4), devices(1, memory=8), "throughput")
    order = np.arange(5, 0, -1, dtype=np.float32)
    held, room = weights(problem, Simulator(problem).schedule(np.zeros(5, np.int32), order))
    assert sorted(held.tolist()) == [0, 0, 0, 4, 4]
    assert room.tolist() == [8]


def test_orders_count_where_live_tensors_may_not_fit() -> None:
    graph = chain(5, size=4)
    assert orders_count(Problem(graph, devices(1, 1, memory=15)))
    assert not orders_count(Problem(graph, devices(1, 1, memory=30)))
    assert not orders_count(
        Problem(graph, devices(1, 1, memory=15), rules=RULES["dnn-partitioning"])
    )
