"""The least work of the busiest device; docs/bounds.md derives it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate.bounds.alike import distinct
from situate.bounds.rounding import rounding
from situate.bounds.together import seconds_of_units
from situate.data.arrays import Floats
from situate.data.problem import Problem

ITERATIONS = 300
"""Steps of the dual ascent; each step's value is a valid bound."""


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
    ascent = _Ascent(problem, kinds, kind_of)
    for step in range(ITERATIONS):
        if time.perf_counter() > until:
            break
        # Steps whose lengths fall as 1 / sqrt(t) make a subgradient ascent converge.
        ascent.step(rate=1 / math.sqrt(step + 1))
    return ascent.best


class _Ascent:
    """Ascent of the dual over the weights and prices (kinds,) of kinds of devices.

    Attributes:
        best: the best bound so far. Any weights and prices give a valid one.
    """

    def __init__(self, problem: Problem, kinds: Floats, kind_of: NDArray[np.intp]) -> None:
        persistent = problem.unit_persistent.astype(np.float64)
        # Equal units choose equal devices: (units, kinds + 1) shrinks to distinct rows, `times` of
        # each.
        rows, row_of = distinct(np.column_stack([kinds[:, :-1].T, persistent]))
        self._times = np.bincount(row_of)
        self._seconds, self._bytes = rows[:, :-1], rows[:, -1]
        self._capacity, self._kind_of = kinds[:, -1], kind_of
        self._count = np.bincount(kind_of).astype(float)
        # Memory can bind only if all units together do not fit on the smallest device.
        self._tight = persistent.sum() > problem.capacity.min()
        self._slack = rounding(problem)
        self._weight, self._price = np.full(len(kinds), 1 / problem.d), np.zeros(len(kinds))
        self.best = self._load(0.0)

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
