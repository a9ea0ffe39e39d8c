"""The minimum of a smooth function by L-BFGS (J. Nocedal, Mathematics of Computation 35, 1980)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from situate.data.arrays import Floats

REMEMBERED = 8
"""Pairs of steps and changes of the gradient that stand for the inverse Hessian."""

SHORTENINGS, SHORTER, ENOUGH = 8, 0.4, 1e-4
"""Most shortenings of a step, the factor of each, and the part of the linear decrease to reach."""

Function = Callable[[Floats], tuple[float, Floats]]
Pairs = deque[tuple[Floats, Floats]]


def minimise(function: Function, start: Floats, first: float, steps: int) -> Floats:
    """The best point of an ascent from the start.

    Args:
        function: returns the value and the gradient at a point.
        start: a point.
        first: length of the first step, in its largest coordinate.
        steps: largest number of steps.
    """
    pairs: Pairs = deque(maxlen=REMEMBERED)
    point = start
    value, gradient = function(point)
    for _ in range(steps):
        direction = -_by_inverse_hessian(gradient, pairs, first)
        slope, length = float(gradient @ direction), 1.0
        for _ in range(SHORTENINGS):
            moved = point + length * direction
            new_value, new_gradient = function(moved)
            if new_value <= value + ENOUGH * length * slope:
                break
            length *= SHORTER
        else:
            return point
        step, change = moved - point, new_gradient - gradient
        if step @ change > 0:
            pairs.append((step, change))
        point, value, gradient = moved, new_value, new_gradient
    return point


def _by_inverse_hessian(gradient: Floats, pairs: Pairs, first: float) -> Floats:
    """The two-loop recursion; without pairs a gradient of the first length."""
    if not pairs:
        return gradient * (first / max(float(abs(gradient).max()), 1e-300))
    direction, along = gradient.copy(), []
    for step, change in reversed(pairs):
        along.append(float(step @ direction) / float(step @ change))
        direction -= along[-1] * change
    step, change = pairs[-1]
    direction *= float(step @ change) / float(change @ change)
    for (step, change), forth in zip(pairs, reversed(along), strict=True):
        direction += (forth - float(change @ direction) / float(step @ change)) * step
    return direction
