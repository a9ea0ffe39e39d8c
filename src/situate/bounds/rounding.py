"""Rounding errors of sums of times, and the gap in spite of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from situate.data.problem import Problem

EPSILON = float(np.finfo(np.float64).eps)
"""Twice the largest relative error of one addition."""

OTHER_ROUNDING = 1e-12
"""Relative error of the few operations beside the sums, generously."""


def rounding(problem: Problem) -> float:
    """Relative error of a bound and a value together, each a sum of up to 2 n times, of ops and of
    transfers between them; bytes have none."""
    if problem.objective == "memory":
        return 0.0
    return OTHER_ROUNDING + 2 * problem.n * EPSILON


def gap(problem: Problem, value: float, bound: float) -> float:
    """The distance of the value above the bound, as a fraction of the bound.

    It is exactly zero if only rounding separates the two: then no plan is better by more. The bound
    is lowered by `rounding`, so an optimal value may lie twice that above it.
    """
    if abs(value - bound) <= 2 * rounding(problem) * bound:
        return 0.0
    return value / bound - 1 if bound > 0 else float("inf")
