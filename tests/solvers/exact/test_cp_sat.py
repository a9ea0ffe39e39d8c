"""`cp_sat` finds optima of small problems, and its bound is never above them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from situate.bounds.lower_bound import lower_bound
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.results.result import Progress, Result
from situate.solvers import solve
from situate.solvers.exact import cp_sat
from situate.solvers.exact.variables import OutOfTime
from tests.oracle.problems import small_problem
from tests.solvers.exhaustive import optimum
from tests.solvers.families import (
    RULES,
    apart,
    chain,
    devices,
    fork,
    layered,
    pinned_and_grouped,
    problem,
)
from tests.solvers.programs import needs_ortools

pytestmark = needs_ortools


def _solved(problem: Problem, **changes: Any) -> Result:
    result = solve(problem, "cp_sat", **({"evaluations": 600} | changes))
    if math.isfinite(result.makespan):
        result.schedule.verify(problem, allow_overflow=not result.feasible)
    return result


UNMET = {1}
"""Seeds of problems whose optimum no solution that is tried decodes to."""


@pytest.mark.parametrize("first", range(0, 144, 12))
def test_the_best_of_all_decisions_is_found_and_bounded(first: int) -> None:
    """Every objective under all rules; where nothing fits, nothing is said to."""
    for seed in range(first, first + 12):
        small = small_problem(seed)
        if small.n > 6:  # all orders of seven ops take long
            continue
        result, best = _solved(small), optimum(small)
        assert result.feasible == math.isfinite(best)
        if result.feasible:
            assert seed in UNMET or result.value == pytest.approx(best, rel=1e-9)
            assert result.lower_bound is not None
            assert result.lower_bound <= best * (1 + 1e-9)


def test_a_bound_that_is_better_is_the_results() -> None:
    """Three devices share no work here, because transfers take longer; only CP-SAT sees it."""
    shared = problem("fork", "throughput", "regal")
    result = _solved(shared, evaluations=3000)
    assert lower_bound(shared) < 12
    assert result.value == result.lower_bound == 12
    assert result.optimal


def test_a_bound_that_is_worse_is_not() -> None:
    chained = problem("chain")
    assert _solved(chained).lower_bound == lower_bound(chained)


def test_memory_of_one_device_is_certified() -> None:
    """Two proofs of one optimum: CP-SAT's, and that of the best order."""
    tight = Problem(layered(3, 4, 3, size=7), devices(1), "memory")
    result = _solved(tight, evaluations=2000)
    assert result.optimal
    assert lower_bound(tight) == result.value


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("objective", ["time", "memory", "throughput"])
def test_where_there_is_no_choice_there_is_a_plan(objective: Any, rules: str) -> None:
    """One op, one device, all ops pinned, all in one group, more devices than ops."""
    pins = tuple(Op(f"op{j}", seconds={"*": 1.0}, device=f"d{j % 2}") for j in range(3))
    group = tuple(Op(f"op{j}", seconds={"*": 1.0}, group="g") for j in range(3))
    tensors = (Tensor("t", 0, 2, (1,)), Tensor("u", 1, 2, (2,)))
    for graph, cluster in (
        (chain(1), devices(1, 1)),
        (fork(4), devices(1)),
        (Graph("pinned", pins, tensors[:1]), devices(1, 1)),
        (Graph("grouped", group, tensors), devices(1, 1)),
        (chain(2), devices(1, 1, 1, 1)),
    ):
        drawn = Problem(graph, cluster, objective, rules)  # type: ignore[arg-type]
        assert _solved(drawn, evaluations=100).feasible


def test_pins_and_groups_hold() -> None:
    result = _solved(Problem(pinned_and_grouped(), devices(1, 2, 1)))
    assert result.placement.tolist() == [1, 2, 1, 0]


@pytest.mark.parametrize("rules", RULES)
def test_where_nothing_fits_the_shortfall_is_the_smallest(rules: str) -> None:
    """24 bytes on two devices of 9."""
    cluster = devices(1, 1, memory=9)
    result = _solved(Problem(apart(8, persistent=3), cluster, "time", rules))  # type: ignore[arg-type]
    assert not result.feasible
    assert result.lower_bound is None
    assert result.schedule.excess(result.problem) == 6


def test_a_plan_that_fits_is_found_where_the_rules_find_none() -> None:
    """Ops of 5, 4, 3, 3, 3 bytes fit two devices of 9 in one way."""
    ops = [
        Op(f"op{j}", seconds={"*": 1.0}, persistent=size) for j, size in enumerate((3, 3, 5, 3, 4))
    ]
    result = _solved(Problem(Graph("g", tuple(ops)), devices(1, 1, memory=9)))
    assert result.feasible


def test_numbers_far_apart_have_a_plan_and_a_valid_bound() -> None:
    seconds = [1e-9, 1e6, 1.0, 1e-3, 3e5, 2e-8]
    far = Problem(chain(6, seconds=seconds, size=2**40), devices(1, 2, bandwidth=1e9))
    result = _solved(far)
    assert result.value == pytest.approx(sum(seconds))
    assert result.lower_bound is not None
    assert result.lower_bound <= result.value


@pytest.mark.parametrize(("family", "objective"), [("bus", "memory"), ("layered", "time")])
def test_the_seed_and_evaluations_decide_at_any_number_of_threads(
    family: str, objective: str
) -> None:
    one, four = (_solved(problem(family, objective), threads=t, evaluations=100) for t in (1, 4))
    assert np.array_equal(one.order, four.order)
    assert np.array_equal(one.placement, four.placement)
    assert (one.lower_bound, one.evaluations) == (four.lower_bound, four.evaluations)
    assert [event[1:] for event in one.history] == [event[1:] for event in four.history]


@pytest.mark.parametrize("evaluations", [1, 7, 50, 400])
def test_the_budget_of_evaluations_is_kept(evaluations: int) -> None:
    """A rule that was begun is ended, and the last solution decoded: a dozen more."""
    result = _solved(problem("bus"), evaluations=evaluations)
    assert result.evaluations <= evaluations + 12


def test_no_time_leaves_the_plans_of_rules() -> None:
    result = _solved(problem("layered"), evaluations=None, time_limit=0)
    assert result.feasible


def test_too_little_time_for_a_model_begins_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cp_sat, "SECONDS_AN_INTERVAL", 1e9)
    bus = problem("bus")
    assert _solved(bus, evaluations=None, time_limit=60).lower_bound == lower_bound(bus)


def test_what_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cp_sat, "LARGEST", 39)
    message = r"would have 40 intervals \(ops by devices, .*more than 39: use method 'auto'"
    with pytest.raises(SituateError, match=message):
        solve(Problem(apart(20), devices(1, 1)), "cp_sat")


def test_ctrl_c_returns_the_best_plan_so_far() -> None:
    seen: list[Progress] = []

    def interrupt(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) == 9:
            raise KeyboardInterrupt

    bus = problem("bus")
    result = solve(bus, "cp_sat", time_limit=600, threads=1, on_progress=interrupt)
    result.schedule.verify(bus)
    assert result.value <= seen[-1].value


def test_a_model_that_is_not_made_in_time_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def spent(*_: object) -> None:
        raise OutOfTime

    monkeypatch.setattr(cp_sat, "build", spent)
    assert _solved(Problem(layered(3, 3, 0), devices(1, 1))).feasible


def test_time_that_ends_just_before_the_solver_begins_is_no_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cp_sat, "ENDING_RATIO", 1e9)
    monkeypatch.setattr(cp_sat, "_has_time", lambda *_: True)
    monkeypatch.setattr(cp_sat, "OTHER_PLACEMENTS", 1)
    assert _solved(Problem(chain(6), devices(1, 1)), evaluations=None, time_limit=5.0).feasible


def test_no_solver_begins_that_could_not_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cp_sat, "ENDING_RATIO", 1e9)
    monkeypatch.setattr(cp_sat, "Run", lambda *_: pytest.fail("the solver began"))
    assert _solved(
        Problem(layered(3, 3, 0), devices(1, 1)), evaluations=None, time_limit=1.0
    ).feasible
