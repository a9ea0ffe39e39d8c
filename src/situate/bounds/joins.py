"""Joins: an op begins early only on the device of all whose results would come too late from
another, and these run there one after the other.

C. Papadimitriou, M. Yannakakis, "Towards an Architecture-Independent Analysis of Parallel
Algorithms", SIAM Journal on Computing 19(2), 1990, for ops and transfers of any length.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from heapq import heappop, heappush

import numpy as np

from situate.bounds.paths import Paths
from situate.bounds.transfers import least_transfers
from situate.data.arrays import Floats
from situate.data.problem import Problem
from situate.data.topology import edge_producers, edge_tensors

EDGES = 4_000
"""Most edges of a graph that is looked at."""

LOOKS = 20_000
"""Ops that are looked at for the sake of others: in a tenth of a second."""

Edges = list[list[tuple[int, float]]]
"""For every op those next to it in one direction, with the seconds of the transfer between them."""


def with_joins(problem: Problem, paths: Paths, until: float = math.inf) -> Paths:
    """The paths, with heads and tails that are longer where results meet, as far as they are found
    by when `time.perf_counter` says `until`."""
    producer, consumer = edge_producers(problem), problem.consumers
    if not 0 < len(consumer) <= EDGES or problem.d < 2:
        return paths
    sent = least_transfers(problem)[edge_tensors(problem)]
    if not sent.any():
        return paths
    before: Edges = [[] for _ in range(problem.n)]
    after: Edges = [[] for _ in range(problem.n)]
    for a, b, seconds in zip(producer.tolist(), consumer.tolist(), sent.tolist(), strict=True):
        before[b].append((a, seconds))
        after[a].append((b, seconds))
    fastest, order = problem.fastest, list(problem.graph.order)
    head = _Starts(fastest, before, after, order, until).starts(paths.head)
    tail = _Starts(fastest, after, before, order[::-1], until).starts(paths.tail)
    longest = max(paths.longest, float((head + fastest + tail).max()))
    return Paths(head, tail, longest)


class _Starts:
    """The least time at which each op may start, in this direction of time."""

    def __init__(
        self, seconds: Floats, before: Edges, after: Edges, order: list[int], until: float
    ) -> None:
        self._seconds, self._before, self._after = seconds.tolist(), before, after
        self._order, self._place = order, {op: place for place, op in enumerate(order)}
        self._looks, self._until = LOOKS // 2, until

    def starts(self, least: Floats) -> Floats:
        """(n,) seconds, no less than those that are known."""
        self._start: list[float] = least.tolist()
        for op in self._order:
            ends = (self._start[a] + self._seconds[a] for a, _ in self._before[op])
            self._start[op] = max(self._start[op], max(ends, default=0.0))
            self._start[op] = self._joined(op)
        return np.array(self._start)

    def _joined(self, op: int) -> float:
        """The least t at which an op may start, if by then all have run on its device that no
        transfer brings there by t."""
        least = self._start[op]
        falling = sorted(self._late(op), reverse=True)
        beside: list[int] = []
        for arrival, other in falling:
            if least >= arrival:
                return least
            beside.append(other)
            least = min(arrival, max(least, self._one_after_the_other(beside)))
        return least

    def _late(self, op: int) -> Iterable[tuple[float, int]]:
        """Ops that `op` waits for and that end on its device, or else it starts later than is
        known: by when it could start if they were on another."""
        # From the start of each to that of `op`: the longest path, and that with a transfer where
        # it is on another device.
        together, apart = {op: 0.0}, {op: math.inf}
        waiting = self._next(op)
        while waiting and self._looks > 0 and time.perf_counter() < self._until:
            self._looks -= 1
            a = self._order[-heappop(waiting)]
            after = [(b, sent) for b, sent in self._after[a] if b in together]
            if a in together or not after:
                continue
            seconds = self._seconds[a]
            away = seconds + max(min(together[b] + sent, apart[b]) for b, sent in after)
            if self._start[a] + away > self._start[op]:
                together[a] = seconds + max(together[b] for b, _ in after)
                apart[a] = away
                yield self._start[a] + away, a
                for place in self._next(a):
                    heappush(waiting, place)

    def _next(self, op: int) -> list[int]:
        """A heap of what is before an op, the last first."""
        return sorted(-self._place[a] for a, _ in self._before[op])

    def _one_after_the_other(self, ops: list[int]) -> float:
        """When one device has run all of these."""
        end = 0.0
        for op in sorted(ops, key=self._start.__getitem__):
            end = max(end, self._start[op]) + self._seconds[op]
        return end
