"""Orders and priorities, and the decoders by name."""

from __future__ import annotations

import numpy as np
import pytest

from situate.decoding import decode, order_of, priority_of
from situate.problem import Problem
from tests.oracle.problems import random_decision, random_problem
from tests.oracle.simulator import simulate
from tests.solvers.families import apart, chain, devices


def test_priorities_rank_as_the_order_does() -> None:
    order = np.array([2, 0, 3, 1], np.int32)
    assert priority_of(order).tolist() == [3, 1, 4, 2]


def test_priorities_of_very_many_ops_are_all_different() -> None:
    order = np.arange(200_000, dtype=np.int32)
    assert len(np.unique(priority_of(order))) == len(order)


@pytest.mark.parametrize("decoder", ["eager", "serial"])
@pytest.mark.parametrize("seed", range(50))
def test_a_decision_decodes_as_the_oracle_has_it(seed: int, decoder: str) -> None:
    problem = random_problem(seed)
    drawn = random_decision(problem, seed)
    order = np.random.default_rng(seed).permutation(problem.n).astype(np.int32)
    schedule = decode(problem, drawn.placement, order, decoder)  # type: ignore[arg-type]
    expected = simulate(problem, drawn.placement, priority_of(order), decoder=decoder)  # type: ignore[arg-type]
    assert schedule.start.tolist() == expected.start.tolist()
    assert schedule.makespan == expected.makespan
    assert schedule.decoder == decoder


@pytest.mark.parametrize("seed", range(100))
def test_the_order_of_a_schedule_is_topological(seed: int) -> None:
    problem = random_problem(seed)
    drawn = random_decision(problem, seed)
    order = order_of(problem, simulate(problem, drawn.placement, drawn.priority, decoder="eager"))
    place = np.argsort(order)
    assert all(place[before] < place[after] for before, after in problem.graph.edges())


@pytest.mark.parametrize("seed", range(100))
def test_so_is_that_of_calls_even_if_they_wait_for_one_another(seed: int) -> None:
    drawn = random_problem(seed)
    problem = Problem(drawn.graph, drawn.cluster, "time", "dnn-partitioning")  # type: ignore[arg-type]
    placement = random_decision(problem, seed).placement
    schedule = decode(problem, placement, np.arange(problem.n, dtype=np.int32), "calls")
    place = np.argsort(order_of(problem, schedule))
    assert all(place[before] < place[after] for before, after in problem.graph.edges())


def test_the_first_of_the_order_goes_first() -> None:
    problem = Problem(apart(3), devices(1))
    schedule = decode(problem, np.zeros(3, np.int32), np.array([2, 0, 1], np.int32), "eager")
    assert schedule.start.tolist() == [1, 2, 0]


def test_an_order_that_is_not_topological_is_a_priority_all_the_same() -> None:
    problem = Problem(chain(3), devices(1))
    schedule = decode(problem, np.zeros(3, np.int32), np.array([2, 1, 0], np.int32), "serial")
    assert schedule.start.tolist() == [0, 1, 2]
