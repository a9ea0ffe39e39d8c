"""Transfers of any split of the work; docs/bounds.md derives their time."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from situate.bounds.rounding import EPSILON
from situate.bounds.together import seconds_of_units
from situate.data.arrays import Floats
from situate.data.problem import Problem

UNITS = 300
"""Most units of a problem that is looked at; the time grows with their number's third power."""

WORK, EVALUATIONS = 200_000_000, 40
"""Third powers of the number of units that are spent, and most evaluations: a fifth of a second."""

SMOOTHINGS = (0.03, 0.01)
"""Widths for averaging eigenvalues, stage by stage, as fractions of the average diagonal."""

IMBALANCE = 0.05
"""Price of imbalance: the part of the bound that it may take off."""

FIRST_GAIN = 0.1
"""Gain over an equal share for which the first price is set, as a fraction of the share."""

FIRST_STEP = 0.2
"""Length of the first step of each stage in its largest coordinate, in average diagonals."""


def least_split(problem: Problem, until: float = math.inf) -> float:
    """Lower bound on the seconds of work and blocking transfers of the busiest device; 0 without
    one.

    Args:
        problem: its transfers occupy two devices each.
        until: time of `time.perf_counter` after which no evaluation starts; 0 if it has passed.
    """
    if problem.transfers != "blocking" or problem.d < 2 or not 1 < problem.units <= UNITS:
        return 0.0
    if time.perf_counter() > until:
        return 0.0
    sends = (problem.d - 1) / problem.d**2 * _laplacian(problem)
    if not sends.any():
        return 0.0
    work = seconds_of_units(problem).min(axis=1)
    # In parts of the longest time, so that no product overflows.
    unit = max(float(work.max()), float(sends.max()))
    seconds = _Ascent(sends / unit, work / unit, problem.d, until).best() * unit
    # A device's time is a sum of transfers, too, whose rounding is not in that of `lower_bound`.
    return seconds * (1 - 2 * EPSILON * len(problem.size))


def _laplacian(problem: Problem) -> Floats:
    """(units, units) Laplacian of a weighted graph whose cut edges take at most the time of the cut
    tensors' transfers.

    Every tensor is a clique of its units. A split in two cuts at most half of these units times the
    other half.
    """
    edges, seconds = np.zeros((problem.units, problem.units)), least_transfers(problem)
    for tensor in np.flatnonzero(seconds > 0).tolist():
        first, last = problem.consumer_start[tensor : tensor + 2]
        touched = [problem.producer[tensor], *problem.consumers[first:last]]
        clique = np.unique(problem.unit[touched])
        half = len(clique) // 2
        if half:
            edges[np.ix_(clique, clique)] += seconds[tensor] / (half * (len(clique) - half))
    np.fill_diagonal(edges, 0.0)
    return np.asarray(np.diag(edges.sum(axis=1)) - edges)


class _Ascent:
    """Ascent of the dual of the relaxed split, stage by stage with less smoothing."""

    def __init__(self, sends: Floats, work: Floats, d: int, until: float) -> None:
        self._sends, self._work, self._d, self._until = sends, work, d, until
        self._scale = float(np.diag(sends).mean())
        # An evaluation takes about units^3 operations.
        self._evaluations_left = min(EVALUATIONS, WORK // len(sends) ** 3)
        self._best, self._point = 0.0, np.zeros(len(sends))

    def best(self) -> float:
        """Seconds of the busiest device."""
        share = float(self._work.sum()) / self._d
        price = IMBALANCE / (self._d**2 * FIRST_GAIN * share) if share > 0 else 0.0
        for smoothing in SMOOTHINGS:
            self._stage(price, smoothing * self._scale)
            if self._best > 0:
                price = IMBALANCE / (self._d**2 * self._best)
        return share + self._best

    def _stage(self, price: float, width: float) -> None:
        matrix = self._sends + price * np.outer(self._work, self._work)
        steps = max(1, self._evaluations_left // len(SMOOTHINGS))

        def value(point: Floats) -> tuple[float, Floats]:
            return self._evaluate(matrix, price, width, point)

        minimise(value, self._point, FIRST_STEP * self._scale, steps)

    def _evaluate(
        self, matrix: Floats, price: float, width: float, point: Floats
    ) -> tuple[float, Floats]:
        """The smoothed dual at a point (units,), with its sign changed, and its gradient."""
        if self._evaluations_left <= 0 or time.perf_counter() > self._until:
            return math.inf, np.zeros(len(point))
        self._evaluations_left -= 1
        shifted = matrix - np.diag(point)
        eigenvalues, vectors = np.linalg.eigh(shifted)
        units = len(point)
        # The computed eigenvalues err by a small multiple of the norm. Less that error, the dual is
        # units * smallest eigenvalue + sum(point), a bound at any point.
        error = 10 * units * EPSILON * float(np.linalg.norm(shifted))
        dual = units * (float(eigenvalues[0]) - error) + float(point.sum())
        self._keep(dual, price, point)
        # A soft minimum of the eigenvalues, because the smallest has no gradient where it is
        # multiple.
        weight = np.exp((eigenvalues[0] - eigenvalues) / width)
        total = float(weight.sum())
        smooth = units * (float(eigenvalues[0]) - width * math.log(total)) + float(point.sum())
        return -smooth, units * (vectors**2 @ (weight / total)) - 1

    def _keep(self, dual: float, price: float, point: Floats) -> None:
        """A dual that is better: above an equal share the busiest device has e seconds, and
        e + price d^2 e^2 is no less than the dual."""
        if dual <= 0:
            return
        slope = price * self._d**2
        # The positive root of e + slope e^2 = dual, written without cancellation.
        value = 2 * dual / (1 + math.sqrt(1 + 4 * slope * dual))
        if value > self._best:
            self._best, self._point = value, point


# The least that transfers take.
def least_transfers(problem: Problem) -> Floats:
    """(m,) seconds of a transfer of each tensor over the fastest link; signals occupy nothing."""
    own, linked = problem.transfer_seconds, np.full(len(problem.size), np.inf)
    for latency, bandwidth in _fastest_links(problem):
        np.minimum(linked, latency + problem.size / bandwidth, out=linked)
    return np.asarray(np.where(np.isnan(own), np.where(problem.signal, 0.0, linked), own))


def _fastest_links(problem: Problem) -> Iterator[tuple[float, float]]:
    """(latency, bandwidth) of the Pareto-optimal links, the largest bandwidth first."""
    between = ~np.eye(problem.d, dtype=bool)
    latencies, bandwidths = problem.latency[between], problem.bandwidth[between]
    shortest = np.inf
    for link in np.lexsort((latencies, -bandwidths)):
        # Of links with at least this bandwidth, none has as short a latency.
        if latencies[link] < shortest:
            shortest = float(latencies[link])
            yield shortest, float(bandwidths[link])


# The minimum of a smooth function by L-BFGS (J. Nocedal, Mathematics of Computation 35, 1980).
HISTORY = 8
"""_Pairs of steps and changes of the gradient that stand for the inverse Hessian."""

SHORTENINGS, SHORTER, SUFFICIENT_DECREASE = 8, 0.4, 1e-4
"""Most shortenings of a step, the factor of each, and the part of the linear decrease to reach."""

_Function = Callable[[Floats], tuple[float, Floats]]
_Pairs = deque[tuple[Floats, Floats]]


def minimise(function: _Function, start: Floats, first: float, steps: int) -> Floats:
    """The best point of an ascent from the start.

    Args:
        function: returns the value and the gradient at a point.
        start: a point.
        first: length of the first step, in its largest coordinate.
        steps: largest number of steps.
    """
    pairs: _Pairs = deque(maxlen=HISTORY)
    point = start
    value, gradient = function(point)
    for _ in range(steps):
        direction = -_by_inverse_hessian(gradient, pairs, first)
        slope, length = float(gradient @ direction), 1.0
        for _ in range(SHORTENINGS):
            moved = point + length * direction
            new_value, new_gradient = function(moved)
            if new_value <= value + SUFFICIENT_DECREASE * length * slope:
                break
            length *= SHORTER
        else:
            return point
        step, change = moved - point, new_gradient - gradient
        # Only positive curvature keeps the inverse Hessian positive definite.
        if step @ change > 0:
            pairs.append((step, change))
        point, value, gradient = moved, new_value, new_gradient
    return point


def _by_inverse_hessian(gradient: Floats, pairs: _Pairs, first: float) -> Floats:
    """The two-loop recursion; without pairs a gradient of the first length."""
    if not pairs:
        return gradient * (first / max(float(abs(gradient).max()), 1e-300))
    direction, along = gradient.copy(), []
    for step, change in reversed(pairs):
        along.append(float(step @ direction) / float(step @ change))
        direction -= along[-1] * change
    # The initial inverse Hessian is the identity times s'y / y'y of the last pair.
    step, change = pairs[-1]
    direction *= float(step @ change) / float(change @ change)
    for (step, change), forth in zip(pairs, reversed(along), strict=True):
        direction += (forth - float(change @ direction) / float(step @ change)) * step
    return direction
