"""The budget, the clock and the best decision of one run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.results.result import Progress
from situate.solvers import solve
from situate.solvers.budget import RECENT_OFFERS, Budget, OutOfTime
from situate.solvers.incumbent import Candidate
from situate.solvers.search import Search
from tests.solvers.families import apart, chain, devices, graph, problem


def _search(
    of: Problem | None = None, bound: float = 0.0, evaluations: int | None = 10, **limits: Any
) -> Search:
    budget = Budget(evaluation_limit=evaluations, **limits)
    return Search(of or Problem(apart(4), devices(1, 2)), bound, budget=budget, threads=1)


def _on(*devices: int) -> tuple[np.ndarray, np.ndarray]:
    """A placement and the order of the file."""
    return np.array(devices, np.int32), np.arange(len(devices), dtype=np.int32)


def test_the_best_offer_is_kept() -> None:
    search = _search()
    search.offer(*_on(1, 1, 1, 1))
    search.offer(*_on(0, 0, 0, 1))
    search.offer(*_on(0, 0, 0, 0))
    assert search.best is not None
    assert search.best.placement.tolist() == [0, 0, 0, 1]
    assert [value for _, _, value in search.history] == [8, 3]


def test_both_decoders_count_as_evaluations() -> None:
    search = _search()
    search.offer(*_on(0, 0, 0, 0))
    search.offer(*_on(0, 0, 0, 0), ["eager"])
    assert search.budget.evaluations == 3


def _late() -> tuple[Problem, np.ndarray]:
    """Both make the large tensor only when the small one has come; the eager decoder does not."""
    ops = [Op("far", seconds={"*": 1.0}, device="d0"), Op("large", seconds={"*": 0.0}, device="d1")]
    ops += [Op("join", seconds={"*": 0.0}, device="d1")]
    tensors = (Tensor("t", 0, 2, (2,)), Tensor("u", 1, 9, (2,)))
    cluster = devices(1, 1, memory=4, transfers="blocking")
    return Problem(Graph("late", tuple(ops), tensors), cluster), np.array([0, 2, 1], np.int32)


@pytest.mark.parametrize("objective", ["time", "throughput", "memory"])
def test_what_does_not_fit_by_one_decoder_is_heard_by_all(objective: Any) -> None:
    problem, order = _late()
    search = _search(replace(problem, objective=objective))
    found = search.offer(np.array([0, 1, 1], np.int32), order, ["eager"])
    assert (found.decoder, found.feasible) == ("serial", True)


def test_what_fits_or_is_too_slow_anyway_is_heard_once() -> None:
    problem, order = _late()
    search = _search(problem)
    search.offer(np.array([0, 1, 1], np.int32), order, ["serial"])
    assert search.budget.evaluations == 1
    assert search.best is not None
    again = _search(problem)
    again.best = replace(search.best, value=0.5)
    assert not again.offer(np.array([0, 1, 1], np.int32), order, ["eager"]).feasible
    assert again.budget.evaluations == 1


def test_one_device_is_preferred_by_any_decoder_within_the_margin() -> None:
    problem, order = _late()
    search = _search(problem)
    search.offer(np.array([0, 1, 1], np.int32), order, ["serial"])
    assert search.best is not None
    search.best = replace(search.best, value=1.0)
    search.prefer([np.array([0, 1, 1], np.int32)], order, 5.0)
    assert search.best.value == 3


def test_a_second_order_is_heard_with_every_placement() -> None:
    waiting = graph(3, [(1, 2)], size=0, seconds=[1.0, 1.0, 5.0])
    search = _search(Problem(waiting, devices(1, 1)))
    search.second_order = np.array([1, 2, 0], np.int32)
    assert search.offer(*_on(0, 0, 1)).value == 7
    assert search.best is not None
    assert search.best.value == 6
    assert search.best.order is search.second_order


def test_what_fits_is_better_than_what_is_fast() -> None:
    small = Problem(apart(4, persistent=1), devices(1, 2, memory=3))
    search = _search(small)
    search.offer(*_on(0, 0, 0, 1))
    fast_and_fat = search.offer(*_on(0, 0, 0, 0))
    assert not fast_and_fat.feasible
    assert search.best is not None
    assert search.best.placement.tolist() == [0, 0, 0, 1]


def test_of_two_that_do_not_fit_the_one_with_fewer_bytes_too_many_is_better() -> None:
    search = _search(Problem(apart(4, persistent=3), devices(1, 2, memory=5)))
    search.offer(*_on(0, 0, 0, 0))
    better = search.offer(*_on(0, 0, 0, 1))
    assert search.best is better
    assert better.excess == 4


@pytest.mark.parametrize(
    ("objective", "value"), [("time", 3.0), ("memory", 9.0), ("throughput", 3.0)]
)
def test_the_value_is_the_objectives(objective: Any, value: float) -> None:
    search = _search(Problem(apart(4, persistent=3), devices(1, 2), objective))
    assert search.offer(*_on(0, 0, 0, 1)).value == value


def test_under_atomic_rules_calls_tell_the_time() -> None:
    graph = chain(3)
    for objective, decoders in (("time", ("calls",)), ("throughput", ("eager", "serial"))):
        atomic = Problem(graph, devices(1, 1), objective, "dnn-partitioning")  # type: ignore[arg-type]
        assert _search(atomic).decoders == decoders


def test_the_budget_runs_out_by_evaluations() -> None:
    search = _search(evaluations=4)
    assert search.budget.remaining() == 1
    search.offer(*_on(0, 0, 0, 0))
    assert search.budget.remaining() == 0.5
    search.offer(*_on(0, 0, 0, 0))
    assert search.finished()


def test_the_budget_runs_out_by_time() -> None:
    assert _search(time_limit=0.0).finished()
    assert not _search(time_limit=1e9).finished()
    assert _search(time_limit=1e-9).finished()


def test_what_takes_as_long_as_the_median_offer_is_begun_only_if_there_is_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, took = [0.0], iter((1.0, 3.0, 30.0, 3.0, 3.0))
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    search = _search(time_limit=60.0)
    decode = search.decoding.decode

    def slow(*given: Any) -> Candidate:
        now[0] += next(took)
        return decode(*given)

    monkeypatch.setattr(search.decoding, "decode", slow)
    assert search.budget.affords(1e9), "nothing is known yet"
    for _ in range(5):
        search.offer(*_on(0, 0, 0, 0), ["eager"])
    assert search.budget.affords(6)
    assert not search.budget.affords(7)
    now[0] = 58.0
    assert search.budget.remaining() > 0
    assert search.finished()


def test_without_a_time_limit_there_is_time_for_everything() -> None:
    search = _search(evaluations=1000)
    search.offer(*_on(0, 0, 0, 0))
    assert search.budget.affords(1e9)


def test_a_bound_that_is_met_ends_the_search() -> None:
    search = _search(bound=3.0, evaluations=1000)
    search.offer(*_on(0, 0, 0, 0))
    assert not search.finished()
    search.offer(*_on(0, 0, 0, 1))
    assert search.proved()
    assert search.finished()


def test_a_plan_that_does_not_fit_proves_nothing() -> None:
    search = _search(Problem(apart(4, persistent=1), devices(1, 2, memory=2)), bound=100.0)
    search.offer(*_on(0, 0, 0, 0))
    assert not search.proved()


def test_progress_tells_the_best_so_far() -> None:
    seen: list[Progress] = []
    search = Search(
        problem("layered"),
        1.0,
        budget=Budget(evaluation_limit=9),
        threads=1,
        on_progress=seen.append,
    )
    search.report()
    search.offer(*_on(*[0] * 20))
    assert (seen[0].value, seen[0].feasible) == (np.inf, False)
    assert search.best is not None
    assert (seen[1].value, seen[1].evaluations) == (search.best.value, 2)
    assert seen[1].lower_bound == 1.0


@pytest.mark.parametrize("rules", ["situate", "dnn-partitioning"])
def test_a_placement_that_may_not_be_is_refused(rules: Any) -> None:
    op = Op("a", seconds={"*": 1.0}, device="d0")
    search = _search(Problem(Graph("g", (op,)), devices(1, 1), "time", rules))
    with pytest.raises(SituateError, match="op 'a' is placed on 'd1', where it may not run"):
        search.offer(*_on(1))
    with pytest.raises(SituateError, match="op 'a' is placed on 'd1', where it may not run"):
        search.prefer([_on(1)[0]], _on(1)[1], 1.0)
    assert search.best is None


def test_a_unit_larger_than_its_device_does_not_fit() -> None:
    unequal = Cluster("c", (Device("d0", memory=1), Device("d1", memory=9)), (Link("*", "*", 1.0),))
    of = Problem(Graph("g", (Op("big", seconds={"*": 1.0}, persistent=5),)), unequal)
    assert not _search(of).offer(*_on(0)).feasible
    assert _search(of).offer(*_on(1)).feasible


def test_a_bound_is_raised_and_never_lowered():
    search = Search(problem("chain"), 5.0)
    search.raise_bound(4.0, "lower")
    assert search.lower_bound == 5
    search.raise_bound(6.0, "CP-SAT")
    assert (search.lower_bound, search.bounded_by) == (6, "CP-SAT")


def test_a_limit_that_is_kept_ends_the_search_after_its_first_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("situate.solvers.budget.MIN_ENFORCED_SECONDS", 0.0)
    search = _search(time_limit=0.0, evaluations=None, enforced=True)
    search.offer(*_on(0, 0, 0, 0))
    assert search.budget.evaluations == 1
    assert search.overtime == "first plan"
    with pytest.raises(OutOfTime):
        search.offer(*_on(0, 0, 0, 1))


def test_an_offer_that_would_end_after_the_limit_does_not_begin():
    search = _search(time_limit=60.0, evaluations=None, enforced=True)
    search.offer(*_on(0, 0, 0, 0))
    for _ in range(RECENT_OFFERS):
        search.budget.record_offer(90.0)
    with pytest.raises(OutOfTime):
        search.offer(*_on(0, 0, 0, 1))


def test_auto_says_that_its_first_plan_took_longer_than_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("situate.solvers.budget.MIN_ENFORCED_SECONDS", 0.0)
    result = solve(problem("layered"), time_limit=0.0)
    assert (result.overtime, result.feasible, result.evaluations) == ("first plan", True, 1)
    assert solve(problem("layered"), evaluations=50).overtime is None
