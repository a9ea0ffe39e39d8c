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
    """

    def __init__(self, problem: Problem) -> None:
        self._producer = np.repeat(problem.producer, np.diff(problem.consumer_start))
        self._reader = problem.consumers
        self.without_data = ~self._fed(problem)
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
        key = place.copy()
        key[self._producer] = np.inf
        while True:
            before = key.copy()
            np.minimum.at(key, self._producer, key[self._reader])
            if np.array_equal(key, before):
                return np.lexsort((place, self.without_data, key)).astype(np.int32)

    def _fed(self, problem: Problem) -> NDArray[np.bool_]:
        """(n,) whether data reaches an op. It enters by ops of the kind `input`, or in graphs
        without any by ops that read nothing and hold nothing for the whole step."""
        fed = np.array([op.kind == "input" for op in problem.graph.ops])
        if not fed.any():
            fed = problem.persistent == 0
            fed[self._reader] = False
            fed[problem.producer[problem.resident == 1]] = False
        readers: list[list[int]] = [[] for _ in range(problem.n)]
        for producer, reader in zip(self._producer.tolist(), self._reader.tolist(), strict=True):
            readers[producer].append(reader)
        for op in problem.graph.order:
            if fed[op]:
                fed[readers[op]] = True
        return fed
