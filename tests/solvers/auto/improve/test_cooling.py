"""Intervals of a budget: rounds that cool, and their evaluations."""

from __future__ import annotations

import dataclasses
import math

import pytest
from msgspec import structs

from situate.data.problem import Problem
from situate.solvers.auto.improve.cooling import (
    BLOCKING,
    CHAINS,
    INTERVAL,
    INTERVALS,
    MOST_EVALUATIONS,
    OF_A_TRANSFER,
    OF_AN_OP,
    OFFERS_TO_AN_INTERVAL,
    OVERLAPPED,
    Cooling,
    blocking_scale,
    chains_of,
    cooling,
    evaluations_of,
    interval_seconds,
)
from situate.solvers.budget import RECENT_OFFERS, Budget
from situate.solvers.heuristics.baselines import single
from situate.solvers.search import Search
from tests.solvers.families import chain, devices


def begun(
    time_limit: float | None = None, evaluations: int | None = None, threads: int = 3
) -> Search:
    """A search that has heard one rule, far from its bound."""
    problem = Problem(chain(4), devices(1, 1))
    search = Search(
        problem, budget=Budget(time_limit=time_limit, evaluation_limit=evaluations), threads=threads
    )
    single(search)
    return search


def spent(search: Search, schedule: Cooling = OVERLAPPED) -> list[tuple[float, int, bool]]:
    """The intervals of a search whose chains spend all that they may."""
    result = []
    for each in cooling(search, CHAINS, schedule):
        result.append(each)
        search.budget.evaluations += CHAINS * each[1]
    return result


@pytest.mark.parametrize("schedule", [OVERLAPPED, BLOCKING])
def test_rounds_begin_hot_and_end_cold(schedule: Cooling) -> None:
    result = spent(begun(evaluations=20_000), schedule)
    begins = [k for k, (_, _, new) in enumerate(result) if new]
    assert len(begins) == len(schedule.round_ends)
    for first, end in zip(begins, [*begins[1:], len(result)], strict=True):
        temperatures = [temperature for temperature, _, _ in result[first:end]]
        assert temperatures == sorted(temperatures, reverse=True)
        assert temperatures[0] == pytest.approx(schedule.hottest, rel=0.2)
        assert temperatures[-1] == pytest.approx(schedule.coldest, rel=0.2)


def test_the_evaluations_are_spent_and_no_more() -> None:
    search = begun(evaluations=20_000)
    assert len(spent(search)) == pytest.approx(INTERVALS, rel=0.05)
    assert search.budget.evaluations <= 20_000
    assert search.budget.evaluations > 20_000 - CHAINS


def test_slices_end_where_nothing_is_evaluated() -> None:
    assert len(list(cooling(begun(evaluations=1000), CHAINS, OVERLAPPED))) == 1


def test_without_a_clock_the_machine_does_not_decide() -> None:
    search = begun(evaluations=1000)
    assert chains_of(search) == CHAINS
    assert interval_seconds(search) == math.inf


def test_with_a_clock_there_is_a_chain_a_thread_and_time_to_look_at_it() -> None:
    search = begun(time_limit=100.0)
    assert chains_of(search) == 3
    assert interval_seconds(search) == INTERVAL
    assert interval_seconds(begun(time_limit=0.0)) == 0
    assert evaluations_of(begun(time_limit=100.0, evaluations=1000), 3) <= 1000 // 3


def test_a_short_search_cools_in_many_steps() -> None:
    assert interval_seconds(begun(time_limit=INTERVAL)) < INTERVAL / 2


def test_an_interval_is_no_shorter_than_a_few_offers() -> None:
    search = begun(time_limit=10 * INTERVAL)
    for _ in range(RECENT_OFFERS):
        search.budget.record_offer(INTERVAL / OFFERS_TO_AN_INTERVAL / 2)
    assert interval_seconds(search) == pytest.approx(INTERVAL / 2)


@pytest.mark.parametrize(
    ("seconds", "hottest"), [(0.0, OF_AN_OP), (2.0, OF_AN_OP + 2 * OF_A_TRANSFER)]
)
def test_blocking_is_the_hotter_the_longer_transfers_take(seconds: float, hottest: float) -> None:
    graph = chain(4)
    tensors = tuple(structs.replace(tensor, seconds=seconds) for tensor in graph.tensors)
    problem = Problem(dataclasses.replace(graph, tensors=tensors), devices(1, 1), "time", "regal")
    assert blocking_scale(problem) == pytest.approx(hottest * problem.fastest.mean())


def test_no_slice_is_longer_than_the_core_counts() -> None:
    for seconds in (None, 100.0):
        assert evaluations_of(begun(seconds, evaluations=10**30), 1) == MOST_EVALUATIONS


def test_what_a_rule_offered_is_the_best() -> None:
    search = begun(evaluations=1000)
    assert search.incumbent is search.best
