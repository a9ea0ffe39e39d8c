"""The least that the busiest device must work; docs/bounds.md derives it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    seconds = np.where(problem.allowed, problem.unit_seconds, np.inf)
    held = problem.unit_persistent.astype(np.float64)
    # Devices that are alike, in the seconds of all units and in memory, share one weight and one
    # price: (u, d) shrinks to (u, kinds), with `count` devices of each kind. 8 equal GPUs are one.
    kinds, kind_of = _distinct(np.vstack([seconds, problem.capacity]).T)
    count = np.bincount(kind_of).astype(float)
    seconds, capacity = kinds[:, :-1].T, kinds[:, -1]
    # Memory can bind only if all units together do not fit on the smallest device.
    tight = held.sum() > problem.capacity.min()
    weight = np.full(len(count), 1 / count.sum())
    price = np.zeros(len(count))
    if len(count) == 1:
        return Load(float(seconds.sum() / count[0]), weight[kind_of], price[kind_of])
    # Units that are alike choose alike: (u, kinds + 1) shrinks to distinct rows, `times` of each.
    rows, row_of = _distinct(np.column_stack([seconds, held]))
    times = np.bincount(row_of)
    seconds, held = rows[:, :-1], rows[:, -1]
    best, slack = Load(0.0, weight[kind_of], price[kind_of]), rounding(problem)
    for step in range(ITERATIONS):
        if time.perf_counter() > until:
            break
        # (rows, kinds): the cheapest device of each unit at these weights and prices. Any weights
        # and prices give a valid bound, so the best of all steps is kept.
        cost = weight * seconds + price * held[:, None]
        choice = cost.argmin(axis=1)
        cheapest = (cost.min(axis=1) * times).sum()
        paid = (price * capacity * count).sum()
        # `paid` is subtracted from a sum of its own size: its rounding error is not relative to the
        # difference, so it is taken off in full.
        bound = float(cheapest - paid - slack * paid)
        if bound > best.seconds:
            best = Load(bound, weight[kind_of], price[kind_of])
        work = seconds[np.arange(len(cost)), choice] * times
        # (kinds,) seconds of one device of each kind, whose devices share its work.
        load = np.bincount(choice, work, len(count)) / count
        # Steps whose lengths fall as 1 / sqrt(t) make a subgradient ascent converge.
        rate = 1 / np.sqrt(step + 1)
        if tight:
            excess = np.bincount(choice, held * times, len(count)) / count - capacity
            price = np.maximum(
                0, price + rate * 0.1 * best.seconds * excess / (capacity * (held * times).sum())
            )
        weight = weight * np.exp(rate * load / max(float(load.max()), 1e-300))
        # A weight of 0 would stay 0 in all steps to come.
        weight = np.maximum(weight, 1e-12)
        weight /= (weight * count).sum()
    return best


def _distinct(rows: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """The distinct rows, sorted, and which of them each row is. Those that are alike to the bit are
    found first: a sort of all rows compares long ones very often."""
    seen: dict[bytes, int] = {}
    rows = np.ascontiguousarray(rows)
    # of_seen (rows,): number of the first row with the same bytes.
    of_seen = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in rows])
    _, first = np.unique(of_seen, return_index=True)
    distinct, which = np.unique(rows[first], axis=0, return_inverse=True)
    return distinct, which.ravel()[of_seen]
