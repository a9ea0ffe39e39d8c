"""A difference of value and bound that rounding cannot explain is a gap."""

from __future__ import annotations

import math

import pytest

from situate.bounds.rounding import EPSILON, gap, rounding
from situate.data.problem import Problem
from tests.solvers.families import apart, devices


@pytest.mark.parametrize("objective", ["time", "throughput"])
def test_sums_of_more_times_are_rounded_more(objective: str) -> None:
    few, many = (Problem(apart(n), devices(1), objective) for n in (1, 10_001))  # type: ignore[arg-type]
    assert rounding(many) - rounding(few) == pytest.approx(20_000 * EPSILON)
    assert gap(few, 1 + 5e-12, 1.0) > 0
    assert gap(many, 1 + 5e-12, 1.0) == 0


def test_bytes_are_not_rounded() -> None:
    problem = Problem(apart(100), devices(1), "memory")
    assert rounding(problem) == 0
    assert gap(problem, 1e15, 1e15) == 0
    assert gap(problem, 1e15 + 1, 1e15) > 0


def test_a_value_below_the_bound_shows() -> None:
    problem = Problem(apart(1), devices(1))
    assert gap(problem, 1 - 1e-12, 1.0) == 0
    assert gap(problem, 0.75, 1.0) == -0.25


def test_where_the_bound_is_zero_only_zero_meets_it() -> None:
    problem = Problem(apart(1), devices(1))
    assert gap(problem, 0.0, 0.0) == 0
    assert gap(problem, 1e-300, 0.0) == math.inf


def test_a_gap_is_a_fraction_of_the_bound() -> None:
    assert gap(Problem(apart(1), devices(1)), 6.0, 4.0) == 0.5


def test_a_value_twice_the_rounding_above_the_bound_meets_it_and_more_does_not() -> None:
    problem = Problem(apart(1), devices(1))
    assert gap(problem, 1 + 1.99 * rounding(problem), 1.0) == 0
    assert gap(problem, 1 + 2.01 * rounding(problem), 1.0) > 0
