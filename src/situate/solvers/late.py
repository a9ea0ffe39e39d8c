"""Late orders: what depends on weights alone runs when it is first needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.problem import Problem

Order = NDArray[np.int32]


class Lateness:
    """Puts off the ops of a problem that no data reaches: parameters, buffers, constants, and what
    is computed from these alone, as quantised weights are unpacked.

    Such an op is ready from the first instant of a step on. In most orders it runs long before its
    result is read, and the result takes memory until then.

    Attributes:
        without_data: (n,) whether no data reaches the op.
        size: bytes of all that such ops make, parameters aside: a late order saves no more.
    """

    def __init__(self, problem: Problem) -> None:
        self._producer = np.repeat(problem.producer, np.diff(problem.consumer_start))
        self._reader = problem.consumers
        self.without_data = ~self._fed(problem)
        made = self.without_data[problem.producer] & (problem.resident == 0)
        self.size = int(problem.size[made].sum())
        between = self.without_data[self._producer]
        self._producer, self._reader = self._producer[between], self._reader[between]

    def order(self, order: Order) -> Order:
        """The order (n,) with each op that no data reaches just behind its first reader, and all
        others as they were.

        Behind it, not before: then the reader's other inputs come first, also from elsewhere, for
        they are as urgent as the reader. No decoder starts an op before its inputs are there.
        """
        place = np.empty(len(order))
        place[order] = np.arange(len(order))
        first_use = self.first_use(place)
        return np.lexsort((place, self.without_data, first_use)).astype(np.int32)

    def first_use(self, place: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where (n,) ops at these places (n,) of an order are first needed: those that no data
        reaches at the place of the first that it does reach and that waits for them, if there is
        one, all others at their own."""
        found = place.copy()
        found[self._producer] = np.inf
        while True:
            before = found.copy()
            np.minimum.at(found, self._producer, found[self._reader])
            if np.array_equal(found, before):
                return found

    def _fed(self, problem: Problem) -> NDArray[np.bool_]:
        """(n,) whether data reaches an op. It enters by ops of the kind `input`; in graphs without
        any by ops that read nothing and hold nothing for the whole step; where there are no such
        ops either, anywhere."""
        fed = np.array([op.kind == "input" for op in problem.graph.ops])
        if not fed.any():
            fed = problem.persistent == 0
            fed[self._reader] = False
            fed[problem.producer[problem.resident == 1]] = False
        if not fed.any():
            return ~fed
        readers: list[list[int]] = [[] for _ in range(problem.n)]
        for producer, reader in zip(self._producer.tolist(), self._reader.tolist(), strict=True):
            readers[producer].append(reader)
        for op in problem.graph.order:
            if fed[op]:
                fed[readers[op]] = True
        return fed
