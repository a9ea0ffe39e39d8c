"""Late orders: what depends on weights alone runs when it is first needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate import _core
from situate.data.arrays import Order
from situate.data.core_problem import core_problem
from situate.data.problem import Problem
from situate.data.topology import places


class Lateness:
    """Puts off the ops of a problem that no data reaches: parameters, buffers, constants, and what
    is computed from these alone, as quantised weights are unpacked.

    Such an op is ready from the first instant of a step on. In most orders it runs long before its
    result is read, and the result takes memory until then.

    Attributes:
        without_data: (n,) whether no data reaches the op.
        size: bytes of all that such ops make, parameters aside: a late order saves no more.

    Args:
        problem: whose ops they are.
        core: the problem as the core holds it, where that is known.
    """

    def __init__(self, problem: Problem, core: _core.Problem | None = None) -> None:
        self._core = core or core_problem(problem)
        enters = _data(problem).astype(np.uint8)
        self._put_off = _core.without_data(self._core, enters)
        self.without_data = self._put_off.astype(np.bool_)
        # (tensors,) which of them are computed from weights, and are not weights themselves.
        made = self.without_data[problem.producer] & (problem.resident == 0)
        self.size = int(problem.size[made].sum())

    def order(self, order: Order) -> Order:
        """The order (n,) with each op that no data reaches just behind its first reader, and all
        others as they were.

        Behind it, not before: then the reader's other inputs come first, also from elsewhere, for
        they are as urgent as the reader. No decoder starts an op before its inputs are there.
        """
        place = places(order).astype(np.float64)
        first_use = self.first_use(place)
        # By first use, then data before weights, then place: behind the first reader, not before.
        return np.lexsort((place, self.without_data, first_use)).astype(np.int32)

    def first_use(self, place: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where (n,) ops at these places (n,) of an order are first needed: those that no data
        reaches at the place of the first that it does reach and that waits for them, if there is
        one, all others at their own."""
        return _core.first_use(self._core, self._put_off, place)


def _data(problem: Problem) -> NDArray[np.bool_]:
    """(n,) sources by which data enters: those of the kind `input`; in graphs without any, what
    holds nothing for the whole step; where there are no such sources either, all."""
    source = np.ones(problem.n, np.bool_)
    source[problem.consumers] = False
    data = source & np.array([op.kind == "input" for op in problem.graph.ops])
    if not data.any():
        data = source & (problem.persistent == 0)
        data[problem.producer[problem.resident == 1]] = False
    return data if data.any() else source
