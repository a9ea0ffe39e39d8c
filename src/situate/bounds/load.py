"""The least that the busiest device must work; docs/bounds.md derives it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate.bounds.alike import distinct
from situate.bounds.groups import seconds_of_units
from situate.bounds.rounding import rounding
from situate.data.arrays import Floats
from situate.data.problem import Problem

ITERATIONS = 300
"""Steps of the dual ascent; each step's value is a valid bound."""


@dataclass(frozen=True)
class Load:
    """A bound on the seconds of the busiest device, and the point of the dual that gives it.

    Attributes:
        seconds: of the bound.
        weight: (d,) of sum one.
        price: (d,) of a byte.
    """

    seconds: float
    weight: Floats
    price: Floats


@np.errstate(over="ignore", invalid="ignore")  # prices of endless times bound nothing
def least_load(problem: Problem, until: float = math.inf) -> Load:
    """Seconds that the busiest device must work, whatever the placement.

    The dual of the linear program that spreads every unit over the devices it may run on, within
    the devices' memory: for weights w of sum one and memory prices l,

        sum_u min_d (w_d seconds[u, d] + l_d bytes[u]) - sum_d l_d capacity[d]

    is a bound. Weights rise where the work falls (multiplicative weights), prices where memory
    overflows. On devices that are all alike the shares are equal, and where everything fits, prices
    of memory that is enough for all are zero.

    Args:
        problem: a graph on a cluster.
        until: what `time.perf_counter` says when the ascent has to end.
    """
    seconds = seconds_of_units(problem)
    # Devices that are alike, in the seconds of all units and in memory, share one weight and one
    # price: 8 equal GPUs are one kind. (kinds, units + 1): seconds of each unit, and the capacity.
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
        held = problem.unit_persistent.astype(np.float64)
        # Units that are alike choose alike: (units, kinds + 1) shrinks to distinct rows, `times` of
        # each.
        rows, row_of = distinct(np.column_stack([kinds[:, :-1].T, held]))
        self._times = np.bincount(row_of)
        self._seconds, self._held = rows[:, :-1], rows[:, -1]
        self._capacity, self._kind_of = kinds[:, -1], kind_of
        self._count = np.bincount(kind_of).astype(float)
        # Memory can bind only if all units together do not fit on the smallest device.
        self._tight = held.sum() > problem.capacity.min()
        self._slack = rounding(problem)
        self._weight, self._price = np.full(len(kinds), 1 / problem.d), np.zeros(len(kinds))
        self.best = self._load(0.0)

    def _load(self, seconds: float) -> Load:
        return Load(seconds, self._weight[self._kind_of], self._price[self._kind_of])

    def step(self, rate: float) -> None:
        """Keep the bound of the present point if it is the best, and go on to the next point."""
        # (rows, kinds): the cheapest kind of device of each unit at these weights and prices.
        cost = self._weight * self._seconds + self._price * self._held[:, None]
        self._keep(cost)
        choice = cost.argmin(axis=1)
        if self._tight:
            self._raise_prices(choice, rate)
        self._raise_weights(choice, rate)

    def _keep(self, cost: Floats) -> None:
        cheapest = (cost.min(axis=1) * self._times).sum()
        paid = (self._price * self._capacity * self._count).sum()
        # `paid` is subtracted from a sum of its own size: its rounding error is not relative to the
        # difference, so it is taken off in full.
        bound = float(cheapest - paid - self._slack * paid)
        if bound > self.best.seconds:
            self.best = self._load(bound)

    def _raise_prices(self, choice: NDArray[np.intp], rate: float) -> None:
        """Raise prices where memory overflows, and lower them where there is room."""
        held = self._held * self._times
        excess = np.bincount(choice, held, len(self._count)) / self._count - self._capacity
        change = rate * 0.1 * self.best.seconds * excess / (self._capacity * held.sum())
        self._price = np.maximum(0, self._price + change)

    def _raise_weights(self, choice: NDArray[np.intp], rate: float) -> None:
        """Raise weights in proportion to the exponential of the load, for a sum of one."""
        work = self._seconds[np.arange(len(choice)), choice] * self._times
        # (kinds,) seconds of one device of each kind, whose devices share its work.
        load = np.bincount(choice, work, len(self._count)) / self._count
        weight = self._weight * np.exp(rate * load / max(float(load.max()), 1e-300))
        # A weight of 0 would stay 0 in all steps to come.
        weight = np.maximum(weight, 1e-12)
        self._weight = weight / (weight * self._count).sum()
