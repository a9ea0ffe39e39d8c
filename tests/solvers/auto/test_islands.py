"""Islands find the same whoever searches, exchange their best, and end with the budget."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.errors import SituateError
from situate.evaluators.workers import dispatch
from situate.evaluators.workers.jobs import Function, Jobs
from situate.evaluators.workers.workers import NoWorkers
from situate.results.result import Result
from situate.solvers import solve
from situate.solvers.auto.improve import improve
from situate.solvers.auto.islands import (
    ISLANDS,
    ROUNDS,
    Decision,
    Improve,
    Islands,
    improved,
    islands,
)
from situate.solvers.budget import Budget
from situate.solvers.learned.learner import Learning
from situate.solvers.search import MethodOptions, Search
from tests.evaluators.workers.harmed_islands import FOLDER, killed_once, killed_where_it_is_a_worker
from tests.solvers.families import devices, layered


def problem(objective: Any = "time") -> Problem:
    return Problem(layered(6, 5, 1, size=4), devices(1, 1, 2, latency=0.5), objective)


def planned(workers: int | None, evaluations: int = 3000, **changes: Any) -> Result:
    learning = Learning(workers=workers)
    return solve(problem(**changes), evaluations=evaluations, seed=3, learning=learning)


def of(result: Result) -> tuple[Any, ...]:
    return (
        result.placement.tobytes(),
        result.order.tobytes(),
        result.value,
        result.evaluations,
    )


def test_seed_and_evaluations_decide_whoever_searches() -> None:
    assert of(planned(1)) == of(planned(2))


@pytest.mark.parametrize("objective", ["time", "memory", "throughput"])
def test_every_objective_ends_with_its_evaluations(objective: str) -> None:
    result = planned(1, 1500, objective=objective)
    assert result.evaluations <= 1600
    result.schedule.verify(result.problem)


class Recorded(Jobs):
    """Jobs in this process that are written down."""

    def map(self, calls: Any, terms: Any = None) -> Iterator[Any]:
        self.calls = [*getattr(self, "calls", []), *calls]
        return super().map(calls)

    def unmoved(self, calls: Any) -> Iterator[Any]:
        """Every island ends at once, where it began."""
        self.calls = [*getattr(self, "calls", []), *calls]
        return ((start, 1) for _, _, start, _, _ in calls)


def _islands(**limits: Any) -> tuple[Search, Recorded, Islands]:
    search = Search(problem(), budget=Budget(**limits), seed=1, threads=1)
    order = np.array(search.problem.graph.order, np.int32)
    search.offer(np.zeros(search.problem.n, np.int32), order)
    jobs = Recorded(improved, 1, shared=(search.problem, 0.0))
    return search, jobs, Islands(search, Function.of(improve, ()), jobs)


def test_every_round_begins_with_the_best_of_all_and_seeds_of_its_own() -> None:
    search, jobs, islands = _islands(evaluation_limit=2000)
    first = search.incumbent
    assert islands.improve(full=False)
    rounds = [jobs.calls[i : i + ISLANDS] for i in range(0, len(jobs.calls), ISLANDS)]
    assert len(rounds) == len(ROUNDS)
    for calls in rounds:
        assert len({start.placement.tobytes() for _, _, start, _, _ in calls}) == 1
    begins = [calls[0][2] for calls in rounds]
    assert np.array_equal(begins[0].placement, first.placement)
    assert not np.array_equal(begins[1].placement, first.placement)
    assert len({share.seed for _, share, *_ in jobs.calls}) == len(jobs.calls)
    assert search.incumbent.value < first.value


def test_what_an_island_finds_is_offered_as_it_was_found() -> None:
    search, _, islands = _islands(evaluation_limit=2000)
    islands.improve(full=False)
    other = Search(problem(), budget=Budget(evaluation_limit=100))
    Decision.of(search.incumbent).offer(other)
    assert other.incumbent.score == search.incumbent.score


def test_in_a_time_limit_those_search_that_are_ready_in_shares_of_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, jobs, islands = _islands(time_limit=1000.0)
    monkeypatch.setattr(jobs, "ready", lambda seconds: 3)
    monkeypatch.setattr(Recorded, "map", lambda self, calls, terms: self.unmoved(calls))
    assert islands.improve(full=False)
    seconds = [share.seconds for _, share, *_ in jobs.calls]
    assert len(seconds) == 3 * len(ROUNDS)
    assert seconds[:4] == pytest.approx([500, 500, 500, 500], rel=0.2)


def test_where_no_worker_is_ready_in_time_none_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    _, jobs, islands = _islands(time_limit=1000.0)
    monkeypatch.setattr(jobs, "ready", lambda seconds: 0)
    assert not islands.improve(full=False)


@pytest.fixture
def harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None is done yet."""
    monkeypatch.setenv(FOLDER, str(tmp_path))


def _found(improve: Improve, workers: int = 2) -> tuple[bytes, int]:
    """The plan of so many workers, and its evaluations."""
    search = Search(
        problem(),
        budget=Budget(evaluation_limit=1000),
        seed=1,
        options=MethodOptions(workers=workers),
    )
    search.offer(np.zeros(search.problem.n, np.int32), np.array(search.problem.graph.order))
    with islands(search, improve) as others:
        assert others is not None
        assert others.improve(full=False)
    return search.incumbent.placement.tobytes(), search.budget.evaluations


def test_an_island_whose_worker_is_killed_is_searched_again(harm: None) -> None:
    with pytest.warns(UserWarning, match=r"^workers failed 1 time, and no island was lost$"):
        disturbed = _found(killed_once)
    assert disturbed == _found(improve, workers=1)


def test_where_no_worker_is_left_this_process_finds_the_same(
    harm: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "MAX_WORKER_FAILURES", 1)
    with pytest.warns(UserWarning, match=r"auto goes on in this process alone \(no worker is left"):
        disturbed = _found(killed_where_it_is_a_worker)
    assert disturbed == _found(improve, workers=1)


def test_in_a_time_limit_an_island_whose_worker_is_killed_is_left_out(
    harm: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The name of the module in its package is that of the function.
    monkeypatch.setattr(sys.modules[improved.__module__], "LATE_SECONDS", 600.0)
    with Jobs(improved, 2, shared=(problem(), 0.0)) as jobs:
        while jobs.ready(1.0) < 2:
            pass
        search, _, _ = _islands(time_limit=1.0)
        islands = Islands(search, Function.of(killed_once, ()), jobs)
        assert islands.improve(full=False)
    assert islands.left_out == 1
    assert jobs.counts.again == 0


def test_in_a_time_limit_this_process_goes_on_where_no_worker_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lost(*_: object) -> Iterator[Any]:
        raise NoWorkers("no worker is left")

    search, jobs, islands = _islands(time_limit=1000.0)
    monkeypatch.setattr(jobs, "map", lost)
    with pytest.warns(UserWarning, match="goes on in this process alone"):
        assert not islands.improve(full=False)
    assert not search.finished()


def test_a_method_that_does_not_search_over_workers_refuses_them() -> None:
    with pytest.raises(SituateError, match="method 'heft' does not learn"):
        solve(problem(), "heft", learning=Learning(workers=2))
