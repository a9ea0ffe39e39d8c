"""Ops that are ready before the step begins: late orders for them, and sources without work."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate import _core
from situate.data.arrays import Bools, Order
from situate.data.core_problem import core_problem
from situate.data.problem import Problem
from situate.data.topology import places


class Lateness:
    """Delays the ops that no data reaches: parameters, buffers, constants, and ops computed from
    these alone, such as the unpacking of quantised weights.

    Such an op is ready as soon as the step begins. Most orders run it long before its result is
    read, and the result occupies memory until then.

    Attributes:
        without_data: (n,) True where no data reaches the op.
        size: output bytes of these ops without parameters, an upper bound on the saving.

    Args:
        problem: with n ops.
        core: the core's copy of the problem, if there is one.
    """

    def __init__(self, problem: Problem, core: _core.problem.Problem | None = None) -> None:
        self._core = core or core_problem(problem)
        enters = _data(problem).astype(np.uint8)
        self._put_off = _core.search.without_data(self._core, enters)
        self.without_data = self._put_off.astype(np.bool_)
        # (tensors,) True for tensors that are computed from weights; weights themselves are not.
        is_late = self.without_data[problem.producer] & (problem.resident == 0)
        self.size = int(problem.size[is_late].sum())

    def order(self, order: Order) -> Order:
        """The order (n,) with each op that no data reaches moved just behind its first reader.

        The reader comes first so that its other inputs, which are as urgent as it is, arrive
        before the late op runs. No decoder starts an op before its inputs exist.
        """
        place = places(order).astype(np.float64)
        first_use = self.first_use(place)
        # Sorted by first use, then data before weights, so that a late op follows its reader.
        return np.lexsort((place, self.without_data, first_use)).astype(np.int32)

    def first_use(self, place: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) the place at which each op is first needed.

        An op that no data reaches is needed at its first descendant that data reaches, if there is
        one. Every other op is needed at its own place.

        Args:
            place: (n,) place of each op in an order.
        """
        return _core.search.first_use(self._core, self._put_off, place)


def _data(problem: Problem) -> NDArray[np.bool_]:
    """(n,) True for sources of data: sources of kind `input`; without any, sources that hold no
    persistent bytes; without these either, all sources."""
    source = np.ones(problem.n, np.bool_)
    source[problem.consumers] = False
    data = source & np.array([op.kind == "input" for op in problem.graph.ops])
    if not data.any():
        data = source & (problem.persistent == 0)
        data[problem.producer[problem.resident == 1]] = False
    return data if data.any() else source


def idle_sources(problem: Problem) -> Bools:
    """(n,) True for ops that read nothing and take no time on any device that can run them."""
    idle = np.asarray((~np.isfinite(problem.seconds) | (problem.seconds == 0)).all(axis=1))
    idle[problem.consumers] = False
    return idle
