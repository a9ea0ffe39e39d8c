"""Late orders: what depends on weights alone runs when it is first needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Order
from situate.data.problem import Problem
from situate.data.topology import edge_producers, places


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
        producer = edge_producers(problem)
        # (edges,) producer and reader of every edge, by producer: the edges of an op are a run.
        rising = np.argsort(producer, kind="stable")
        self._producer, self._reader = producer[rising], problem.consumers[rising]
        self.without_data = self._without_data(problem)
        # (tensors,) which of them are computed from weights, and are not weights themselves.
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
        place = places(order).astype(np.float64)
        first_use = self.first_use(place)
        # By first use, then data before weights, then place: behind the first reader, not before.
        return np.lexsort((place, self.without_data, first_use)).astype(np.int32)

    def first_use(self, place: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where (n,) ops at these places (n,) of an order are first needed: those that no data
        reaches at the place of the first that it does reach and that waits for them, if there is
        one, all others at their own."""
        found = place.copy()
        # Ops that read nothing of data have no place of their own: theirs is the first of their
        # readers', which may itself wait for a reader, so places fall until none changes.
        found[self._producer] = np.inf
        while True:
            before = found.copy()
            np.minimum.at(found, self._producer, found[self._reader])
            if np.array_equal(found, before):
                return found

    def _without_data(self, problem: Problem) -> NDArray[np.bool_]:
        """(n,) whether all that an op reads, if anything, comes of ops that no data reaches."""
        # (n + 1,) the first edge of every op: Kahn's algorithm over ops that no data reaches.
        begins = np.searchsorted(self._producer, np.arange(problem.n + 1))
        missing = np.bincount(self._reader, minlength=problem.n)
        found = (missing == 0) & ~_data(problem, missing == 0)
        reached = np.flatnonzero(found).tolist()
        for op in reached:
            for reader in self._reader[begins[op] : begins[op + 1]].tolist():
                missing[reader] -= 1
                if not missing[reader]:
                    reached.append(reader)
        found[reached] = True
        return np.asarray(found)


def _data(problem: Problem, source: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(n,) sources by which data enters: those of the kind `input`; in graphs without any, what
    holds nothing for the whole step; where there are no such sources either, all."""
    data = source & np.array([op.kind == "input" for op in problem.graph.ops])
    if not data.any():
        data = source & (problem.persistent == 0)
        data[problem.producer[problem.resident == 1]] = False
    return data if data.any() else source
