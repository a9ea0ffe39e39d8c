"""Segments whose devices are as full as one another, where memory is sought."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from situate.bounds.lower_bound import tightest_bound
from situate.data.problem import Problem
from situate.solvers import solve
from situate.solvers.auto.memory.level_cuts import offer_level_cuts
from situate.solvers.budget import Budget
from situate.solvers.search import Search
from tests.solvers.training import gpus, training


def offered(problem: Problem) -> Search:
    """A search that has heard of all on the first device, and then of cuts."""
    search = Search(
        problem, tightest_bound(problem).value, budget=Budget(evaluation_limit=1000), threads=1
    )
    search.offer(np.zeros(problem.n, np.int32), np.array(problem.graph.order, np.int32))
    offer_level_cuts(search)
    return search


def for_memory(*memory: int) -> Problem:
    return replace(training(gpus(*memory)), objective="memory")


@pytest.mark.parametrize("devices", [2, 3, 4])
def test_peaks_are_level(devices: int) -> None:
    search = offered(for_memory(*[10**6] * devices))
    peak = search.incumbent.schedule.peak
    assert peak.max() < 1.35 * peak.min()
    assert search.incumbent.feasible


def test_a_device_of_little_memory_gets_no_more_than_it_holds() -> None:
    search = offered(for_memory(200, 30))
    assert search.incumbent.feasible
    assert search.incumbent.schedule.peak[1] <= 30 < search.incumbent.value


def test_a_plan_that_meets_the_bound_ends_it() -> None:
    search = offered(for_memory(10**6, 10**6))
    again = Search(
        search.problem, search.incumbent.value, budget=Budget(evaluation_limit=1000), threads=1
    )
    again.offer(search.incumbent.placement, search.incumbent.order)
    before = again.budget.evaluations
    offer_level_cuts(again)
    assert again.budget.evaluations == before


def test_it_is_never_above_stages_whose_ends_move() -> None:
    for memory in ((10**6, 10**6), (200, 30), (90, 60)):
        search = offered(for_memory(*memory))
        assert search.incumbent.value <= solve(search.problem, "pipeline").value


def test_other_objectives_and_single_devices_have_none() -> None:
    for problem in (training(gpus(100, 100)), for_memory(10**6)):
        assert len(offered(problem).history) == 1
