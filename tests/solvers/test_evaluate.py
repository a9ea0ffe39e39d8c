"""A placement from elsewhere has the value that the solvers give it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.errors import SituateError
from situate.solvers import solve
from situate.solvers.evaluate import evaluate
from tests.solvers.families import RULES, devices, families, layered, problem
from tests.solvers.test_solve import check

PROBLEM = Problem(layered(4, 3, 1, persistent=1), devices(1, 1, 2, memory=30))
METHODS = ("topological", "heft", "etf")


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("family", families())
def test_a_placement_of_ones_own_is_worth_what_the_solvers_say(family: str, rules: str) -> None:
    for method in METHODS:
        by = solve(problem(family, "time", rules), method, evaluations=1)
        own = evaluate(by.problem, by.placement, by.order, method="mine", seed=5)
        check(by.problem, own)
        assert own.value <= by.value
        assert (own.lower_bound, own.method, own.seed) == (by.lower_bound, "mine", 5)


def test_a_plans_mapping_is_a_placement() -> None:
    by = solve(PROBLEM, "heft")
    own = evaluate(PROBLEM, by.plan.placement)
    np.testing.assert_array_equal(own.placement, by.placement)
    assert own.order.tolist() == list(PROBLEM.graph.order)
    assert own.plan.schedule(PROBLEM).makespan == own.makespan


def test_a_placement_that_does_not_fit_is_a_result_all_the_same() -> None:
    full = replace(PROBLEM, cluster=devices(1, 1, 2, memory=10))
    result = evaluate(full, np.zeros(full.n, np.int64))
    assert not result.feasible
    assert result.gap == np.inf


def test_a_result_keeps_no_array_of_its_callers() -> None:
    given = np.zeros(PROBLEM.n, np.int32)
    result = evaluate(PROBLEM, given)
    given[:] = 1
    assert not result.placement.any()


@pytest.mark.parametrize(
    ("placement", "order", "message"),
    [
        (np.zeros(3, int), None, r"placement: must be integers of shape \(12,\)"),
        (np.full(12, 3), None, "placement: op 'op0' is placed on device 3; there are devices"),
        ({"op0": "d0"}, None, "placement: op 'op1' has no device"),
        (np.zeros(12, int), np.zeros(12, int), "order: must have each .* it lacks 1, op 'op1'"),
    ],
)
def test_what_is_no_decision_is_refused(placement: Any, order: Any, message: str) -> None:
    with pytest.raises(SituateError, match=message):
        evaluate(PROBLEM, placement, order)
