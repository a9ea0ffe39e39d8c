"""Minima of smooth functions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from situate.bounds.quasi_newton import minimise
from situate.data.arrays import Floats


def quadratic(point: Floats) -> tuple[float, Floats]:
    """A narrow valley with its lowest point at (1, 2)."""
    along = np.array([1.0, 100.0]) * (point - np.array([1.0, 2.0]))
    return float(along @ along) / 2, np.array([1.0, 100.0]) * along


def test_the_lowest_point_of_a_valley() -> None:
    assert minimise(quadratic, np.zeros(2), 1.0, 60) == pytest.approx([1, 2], abs=1e-4)


def test_more_steps_are_no_worse() -> None:
    values = [quadratic(minimise(quadratic, np.zeros(2), 0.1, steps))[0] for steps in range(12)]
    assert values == sorted(values, reverse=True)
    assert values[0] == quadratic(np.zeros(2))[0]


def test_where_no_step_is_better_it_stays() -> None:
    """A function that ends: every other point is infinite."""
    start = np.array([3.0, 4.0])

    def ended(point: Floats) -> tuple[float, Floats]:
        return (5.0 if (point == start).all() else math.inf), np.ones(2)

    assert (minimise(ended, start, 1.0, 10) == start).all()


def test_a_gradient_of_zero_stays() -> None:
    assert (minimise(quadratic, np.array([1.0, 2.0]), 1.0, 5) == [1, 2]).all()
