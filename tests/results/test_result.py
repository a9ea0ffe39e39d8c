"""A result's figures are those of the plan it carries."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from situate.data.problem import Problem
from situate.results.result import Result
from situate.solvers import solve
from situate.solvers.evaluate import evaluate
from tests.solvers.families import apart, chain, devices


def _result(objective: str = "time") -> Result:
    problem = Problem(chain(4, persistent=3), devices(1, 2), objective)  # type: ignore[arg-type]
    return solve(problem, "single")


def test_the_gap_is_relative_to_the_bound() -> None:
    result = _result()
    assert replace(result, value=6.0, lower_bound=4.0).gap == 0.5
    assert replace(result, value=4.0, lower_bound=4.0).gap == 0
    assert replace(result, value=3.0, lower_bound=4.0).gap == -0.25
    assert replace(result, value=1.0, lower_bound=0.0).gap == math.inf
    assert replace(result, value=0.0, lower_bound=0.0).gap == 0


def test_a_gap_of_zero_and_nothing_else_proves_a_plan_optimal() -> None:
    result = _result()
    for value, optimal in ((4.0, True), (4 + 4e-12, True), (4 + 1e-10, False), (3.9, False)):
        judged = replace(result, value=value, lower_bound=4.0)
        assert judged.optimal is optimal
        assert (judged.gap == 0) is optimal


def test_a_plan_that_does_not_fit_is_not_optimal() -> None:
    result = replace(_result(), value=4.0, lower_bound=4.0, feasible=False)
    assert result.gap == math.inf
    assert not result.optimal


@pytest.mark.parametrize("objective", ["time", "memory", "throughput"])
@pytest.mark.parametrize("method", ["single", "auto", "random"])
def test_a_plan_that_does_not_fit_has_no_bound(method: str, objective: str) -> None:
    """No plan fits: prices of memory that nobody can pay would give a bound above the value."""
    problem = Problem(chain(4, persistent=3), devices(1, 2, memory=5), objective)  # type: ignore[arg-type]
    result = solve(problem, method, evaluations=20)
    assert (result.feasible, result.lower_bound, result.gap) == (False, None, math.inf)
    assert result.plan.lower_bound is None
    placed = evaluate(problem, result.placement)
    assert (placed.lower_bound, placed.gap) == (None, math.inf)


def test_figures_come_from_the_schedule() -> None:
    result = _result()
    assert result.makespan == 4
    assert result.throughput == 0.25
    assert result.peak_memory == {"d0": 12 + 2, "d1": 0}
    assert result.devices_used == ["d0"]


def test_nothing_takes_time_at_any_rate() -> None:
    result = solve(Problem(apart(3, seconds=0.0), devices(1, 1), "throughput"), "single")
    assert result.throughput == math.inf
    assert result.devices_used == ["d0"]


def test_a_device_that_only_holds_bytes_is_used() -> None:
    problem = Problem(apart(2, seconds=0.0, persistent=3), devices(1, 1, memory=4))
    assert solve(problem, "topological").devices_used == ["d0", "d1"]


@pytest.mark.parametrize("objective", ["time", "memory", "throughput"])
def test_the_plan_repeats_the_result(objective: str) -> None:
    result = _result(objective)
    plan = result.plan
    assert (plan.value, plan.makespan) == (result.value, result.makespan)
    assert (plan.method, plan.decoder, plan.objective) == ("single", result.decoder, objective)
    assert plan.peak_memory == result.peak_memory
    assert list(plan.placement) == [result.problem.graph.ops[j].name for j in result.order]
    assert set(plan.placement.values()) == {"d0"}


def test_a_value_that_is_not_finite_is_none_in_the_plan() -> None:
    result = _result()
    endless = replace(result.schedule, makespan=math.inf)
    never = replace(result, value=math.inf, lower_bound=None, feasible=False, schedule=endless)
    assert (never.plan.value, never.plan.makespan) == (None, None)


def test_whatever_is_shown_of_a_problem_and_its_result_is_a_line() -> None:
    result = _result()
    shown = (result, result.problem, result.problem.graph, result.schedule, result.plan)
    assert all(len(repr(each)) < 200 and "\n" not in repr(each) for each in shown)
    assert "single" in repr(result)
    assert "fits" in repr(result)
