"""The least work of the busiest device; docs/bounds.md derives it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate.bounds.alike import distinct, equal_rows
from situate.bounds.rounding import rounding
from situate.bounds.together import seconds_of_units
from situate.data.arrays import Floats
from situate.data.problem import Problem

ITERATIONS = 300
"""Steps of the dual ascent; each step's value is a valid bound."""

ITERATIONS_FROM_BEST = 20
"""Short steps from the best point: prices of tight memory often swing around their optimum."""

MOST_ROWS, GROUPS = 10_000, 4096
"""If more units than the first differ, the long steps are on groups of similar units, about so
many."""


@dataclass(frozen=True)
class Load:
    """A bound on the seconds of the busiest device, and its point of the dual.

    Attributes:
        seconds: the bound.
        weight: (d,) weights of the devices; their sum is one.
        price: (d,) price of a byte on each device.
    """

    seconds: float
    weight: Floats
    price: Floats


@np.errstate(over="ignore", invalid="ignore")  # prices of endless times bound nothing
def least_load(problem: Problem, until: float = math.inf) -> Load:
    """Seconds that the busiest device works at least, under any placement.

    The linear program spreads every unit over its allowed devices, within their memory. By its
    dual, for weights w of sum one and memory prices l,

        sum_u min_d (w_d seconds[u, d] + l_d bytes[u]) - sum_d l_d capacity[d]

    is a bound. Weights rise where the load is large (multiplicative weights), prices where memory
    overflows. Equal devices have equal shares. Where everything fits, prices are zero.

    Args:
        problem: a graph on a cluster.
        until: time of `time.perf_counter` at which the ascent ends.
    """
    seconds = seconds_of_units(problem)
    # Devices with equal seconds of all units and equal memory share one weight and one price:
    # 8 equal GPUs are one kind. (kinds, units + 1): seconds of each unit, and the capacity.
    kinds, kind_of = distinct(np.vstack([seconds, problem.capacity]).T)
    if len(kinds) == 1:
        equal = np.full(problem.d, 1 / problem.d)
        return Load(float(kinds[0, :-1].sum() / problem.d), equal, np.zeros(problem.d))
    # (units, kinds + 1): seconds on a device of each kind, and bytes.
    rows = np.column_stack([kinds[:, :-1].T, problem.unit_persistent.astype(np.float64)])
    first, row_of = equal_rows(rows)
    capacity = kinds[:, -1]
    if len(first) <= MOST_ROWS:
        # Equal units choose equal devices, so the ascent visits distinct rows, `times` of each.
        rows, row_of = distinct(rows)
        ascent = last = _Ascent(problem, rows, np.bincount(row_of), capacity, kind_of)
    else:
        # A pass over a million units takes as long as hundreds over groups. The groups' weights and
        # prices are nearly the best for units; their bound is none, because a group is not split.
        groups = _grouped(rows)
        ascent = _Ascent(problem, groups, np.ones(len(groups), np.intp), capacity, kind_of)
        last = _Ascent(problem, rows, np.ones(len(rows), np.intp), capacity, kind_of)
    ascent.climb(range(ITERATIONS), until)
    last.go_to_best_of(ascent)
    return last.climb(range(ITERATIONS, ITERATIONS + ITERATIONS_FROM_BEST), until)


def _grouped(rows: Floats) -> Floats:
    """Sums of the rows (units, kinds + 1) of similar units.

    Units of a group may use the same kinds of devices and have nearly the same ratio between the
    seconds of the slowest and the fastest kind, so that most of a group prefer the same device.
    """
    seconds = rows[:, :-1]
    allowed = np.isfinite(seconds)
    may = allowed @ (2.0 ** np.arange(allowed.shape[1]))
    slowest = np.where(allowed, seconds, 0.0).max(axis=1)
    ratio = slowest / np.maximum(seconds.min(axis=1), np.finfo(np.float64).tiny)
    similar = np.lexsort((ratio, may))
    starts = np.arange(0, len(rows), -(-len(rows) // GROUPS))
    other = np.flatnonzero(np.diff(may[similar])) + 1
    return np.asarray(np.add.reduceat(rows[similar], np.union1d(starts, other), axis=0))


class _Ascent:
    """Ascent of the dual over the weights and prices (kinds,) of kinds of devices.

    Args:
        rows: (k, kinds + 1) seconds of units on a device of each kind, and their bytes.
        times: (k,) units of each row.
        capacity: (kinds,) bytes of a device.
        kind_of: (d,) the kind of each device.

    Attributes:
        best: the best bound so far. Any weights and prices give a valid one.
    """

    def __init__(
        self,
        problem: Problem,
        rows: Floats,
        times: NDArray[np.intp],
        capacity: Floats,
        kind_of: NDArray[np.intp],
    ) -> None:
        self._times, self._seconds, self._bytes = times, rows[:, :-1], rows[:, -1]
        self._capacity, self._kind_of = capacity, kind_of
        self._count = np.bincount(kind_of).astype(float)
        # Memory can bind only if all units together do not fit on the smallest device.
        self._tight = problem.unit_persistent.sum() > problem.capacity.min()
        self._slack = rounding(problem)
        self._weight, self._price = np.full(len(capacity), 1 / problem.d), np.zeros(len(capacity))
        self.best = self._load(0.0)

    def go_to_best_of(self, other: _Ascent) -> None:
        """Continue from the weights and prices of another ascent's best bound."""
        first = np.unique(self._kind_of, return_index=True)[1]
        self._weight, self._price = other.best.weight[first], other.best.price[first]

    def climb(self, steps: range, until: float) -> Load:
        """The best bound after these steps, or after those that begin before `until`.

        Steps whose lengths fall as 1 / sqrt(t) make a subgradient ascent converge.
        """
        for step in steps:
            if time.perf_counter() > until:
                break
            self.step(rate=1 / math.sqrt(step + 1))
        return self.best

    def _load(self, seconds: float) -> Load:
        return Load(seconds, self._weight[self._kind_of], self._price[self._kind_of])

    def step(self, rate: float) -> None:
        """Keep the bound of the current point if it is the best, and move to the next point."""
        # (rows, kinds): the cheapest kind of device of each unit at these weights and prices.
        cost = self._weight * self._seconds + self._price * self._bytes[:, None]
        self._keep(cost)
        choice = cost.argmin(axis=1)
        if self._tight:
            self._raise_prices(choice, rate)
        self._raise_weights(choice, rate)

    def _keep(self, cost: Floats) -> None:
        cheapest = (cost.min(axis=1) * self._times).sum()
        memory_cost = (self._price * self._capacity * self._count).sum()
        # `memory_cost` is as large as the sum it is subtracted from. Its rounding error is not
        # relative to the difference, so it is subtracted in full.
        value = float(cheapest - memory_cost - self._slack * memory_cost)
        if value > self.best.seconds:
            self.best = self._load(value)

    def _raise_prices(self, choice: NDArray[np.intp], rate: float) -> None:
        """Raise prices where memory overflows, and lower them where there is room."""
        persistent = self._bytes * self._times
        excess = np.bincount(choice, persistent, len(self._count)) / self._count - self._capacity
        # Prices are seconds a byte, so the step is a part of the bound over the bytes.
        change = rate * 0.1 * self.best.seconds * excess / (self._capacity * persistent.sum())
        self._price = np.maximum(0, self._price + change)

    def _raise_weights(self, choice: NDArray[np.intp], rate: float) -> None:
        """Raise weights in proportion to the exponential of the load, for a sum of one."""
        work = self._seconds[np.arange(len(choice)), choice] * self._times
        # (kinds,) seconds of one device of each kind, whose devices share its work.
        load = np.bincount(choice, work, len(self._count)) / self._count
        weight = self._weight * np.exp(rate * load / max(float(load.max()), 1e-300))
        # A weight of 0 would stay 0 in all later steps.
        weight = np.maximum(weight, 1e-12)
        self._weight = weight / (weight * self._count).sum()
