"""BRKGA that breeds parts, as a start of `auto`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from research.regal.bred_parts import FIRST_EVALUATIONS, SHARE, offer_bred_parts
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.solvers.budget import Budget
from situate.solvers.evolutionary.regal.linkage import ConstantLinkage
from situate.solvers.search import Search
from tests.solvers.families import chain, devices, fork, graph, layered

EVALUATIONS = 5000

HALF = ConstantLinkage(0.5)


def ladders(count: int, length: int, bandwidth: float = 1.0) -> Problem:
    """Chains on two devices; a tensor takes 8 / bandwidth seconds, an op one."""
    edges = [(i * length + j, i * length + j + 1) for i in range(count) for j in range(length - 1)]
    return Problem(graph(count * length, edges, size=8), devices(1, 1, bandwidth=bandwidth))


def begun(problem: Problem, threads: int = 1, **limits: float) -> Search:
    """A search that has the plan with everything on the first device."""
    search = Search(
        problem, budget=Budget(**(limits or {"evaluation_limit": EVALUATIONS})), threads=threads
    )
    search.offer(np.zeros(problem.n, np.int32), np.array(problem.graph.order, np.int32))
    return search


# Chains go to their devices as a whole.
def test_parts_find_what_single_ops_do_not() -> None:
    problem = ladders(8, 12)
    parts, ops = begun(problem), begun(problem)
    offer_bred_parts(parts, ConstantLinkage(0.9))
    offer_bred_parts(ops, ConstantLinkage(0.0))
    assert parts.incumbent.value < min(ops.incumbent.value, 96)


@pytest.mark.parametrize("rules", ["situate", "regal"])
def test_annealing_can_go_on_from_the_offer(rules: str) -> None:
    problem = replace(ladders(8, 12, bandwidth=64.0), rules=RULES[rules])
    search = begun(problem)
    offer_bred_parts(search, HALF)
    place = np.argsort(search.incumbent.order)
    assert search.incumbent.value < 96
    assert all(place[problem.producer[tensor]] < place[reader] for tensor, reader in edges(problem))


def edges(problem: Problem) -> list[tuple[int, int]]:
    """Tensors and their readers."""
    counts = np.diff(problem.consumer_start)
    return list(zip(np.repeat(np.arange(len(counts)), counts), problem.consumers, strict=True))


# The budget.
def test_it_takes_at_most_its_share_of_the_evaluations() -> None:
    search = begun(ladders(8, 12))
    offer_bred_parts(search, HALF)
    assert FIRST_EVALUATIONS < search.budget.evaluations <= SHARE * EVALUATIONS + 4


def test_it_ends_early_if_plans_are_far_from_the_best() -> None:
    problem = Problem(fork(40, size=1000), devices(1, 1))
    search = begun(problem)
    before = search.incumbent
    offer_bred_parts(search, HALF)
    assert search.incumbent is before
    assert search.budget.evaluations <= FIRST_EVALUATIONS + 2


@pytest.mark.parametrize("limits", [{"evaluation_limit": 200}, {"time_limit": 1.0}])
def test_it_does_not_begin_without_time_for_a_generation(limits: dict[str, float]) -> None:
    search = begun(ladders(8, 12), **limits)
    search.budget.record_offer(0.1)
    search.budget.record_offer(0.1)
    before = search.budget.evaluations
    offer_bred_parts(search, HALF)
    assert search.budget.evaluations == before


def test_threads_change_nothing() -> None:
    one, three = (begun(ladders(8, 12), threads) for threads in (1, 3))
    offer_bred_parts(one, HALF)
    offer_bred_parts(three, HALF)
    assert one.incumbent.placement.tolist() == three.incumbent.placement.tolist()
    assert one.budget.evaluations == three.budget.evaluations


# The step time on several devices is the only purpose.
@pytest.mark.parametrize(
    "problem",
    [
        Problem(layered(6, 6, 0), devices(1, 1), "memory"),
        Problem(layered(6, 6, 0), devices(1, 1), "throughput"),
        Problem(layered(6, 6, 0), devices(1, 1), rules=RULES["dnn-partitioning"]),
        Problem(chain(12), devices(1)),
    ],
    ids=["memory", "throughput", "atomic", "one device"],
)
def test_other_problems_are_left_alone(problem: Problem) -> None:
    search = begun(problem)
    before = search.budget.evaluations
    offer_bred_parts(search, HALF)
    assert search.budget.evaluations == before
