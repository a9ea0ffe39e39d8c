"""`heavy-edge`: what exchanges most bytes comes together, until there are few enough groups.

Contraction of heavy edges (B. Hendrickson, R. Leland, *A Multilevel Algorithm for Partitioning
Graphs*, Supercomputing 1995), one edge at a time, with a limit on a group's seconds. An edge's
weight is that of M. Holtgrewe, P. Sanders, C. Schulz, *Engineering a Scalable High Quality Graph
Partitioner*, IPDPS 2010, section 3: bytes squared over the product of the two groups' seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heapreplace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from situate.grouping.unit_graph import unit_graph
from situate.problem import Problem

MOST = 1.5
"""Seconds of a group over those of an average group, at most, where that can be."""

LEAST = 1e-30
"""The least that counts as a product of two groups' seconds: what takes no time is heavy."""

Edge = tuple[float, int, int]
"""The weight, negative so that the heaviest is the least, and the two groups."""


def labels(problem: Problem, count: int) -> NDArray[np.int64]:
    """Labels (units,) of `count` groups: fewer if there are fewer units, more if units that share
    no device leave no other way."""
    contraction = _Contraction(problem)
    limit = MOST * sum(contraction.seconds) / count
    contraction.contract(count, limit)
    while len(contraction.members) > count:
        if contraction.is_linked():
            limit *= MOST
        elif not contraction.bridge():
            break
        contraction.contract(count, limit)
    return contraction.labels()


class _Contraction:
    """Groups that become one, two by two."""

    def __init__(self, problem: Problem) -> None:
        graph = unit_graph(problem)
        self.members = {unit: [unit] for unit in range(len(graph))}
        self.seconds: list[float] = graph.seconds.tolist()
        self.bytes: list[int] = graph.persistent.tolist()
        self.capacity: list[int] = problem.capacity.tolist()
        self.always_fits = sum(self.bytes) <= min(self.capacity)
        self.allowed = [_bits(row) for row in problem.allowed]
        rows = zip(graph.start[:-1].tolist(), graph.start[1:].tolist(), strict=True)
        neighbour, flow = graph.neighbour.tolist(), graph.bytes.astype(float).tolist()
        self.flow = [dict(zip(neighbour[a:b], flow[a:b], strict=True)) for a, b in rows]

    def contract(self, count: int, limit: float) -> None:
        """Merge along edges, the heaviest first, into groups of at most `limit` seconds.

        Weights fall as groups grow: an edge's is brought up to date when its turn comes.
        """
        heap = [self._edge(a, b) for a, b in self._pairs()]
        heapify(heap)
        while heap and len(self.members) > count:
            weight, a, b = heap[0]
            if b not in self.flow[a] or self.seconds[a] + self.seconds[b] > limit:
                heappop(heap)
            elif (now := self._edge(a, b))[0] > weight:
                heapreplace(heap, now)
            else:
                heappop(heap)
                for edge in self._merge(a, b) if self._share(a, b) else ():
                    heappush(heap, edge)

    def is_linked(self) -> bool:
        """Whether there is an edge between groups that could be one but for their seconds."""
        return any(self._share(a, b) for a, b in self._pairs())

    def bridge(self) -> bool:
        """Edges without bytes between groups that can be one, each to the next in seconds where
        that will do. Returns whether there are any."""
        ordered = sorted(self.members, key=lambda group: (self.allowed[group], self.seconds[group]))
        pairs = list(zip(ordered[::2], ordered[1::2], strict=False))
        linked = [pair for pair in pairs if self._share(*pair)]
        linked = linked or [p for p in combinations(self._lightest(), 2) if self._share(*p)][:1]
        for a, b in linked:
            self.flow[a][b] = self.flow[b][a] = 0.0
        return bool(linked)

    def labels(self) -> NDArray[np.int64]:
        result = np.empty(len(self.seconds), np.int64)
        for label, units in self.members.items():
            result[units] = label
        return result

    def _pairs(self) -> Iterator[tuple[int, int]]:
        return ((a, b) for a in self.members for b in self.flow[a] if a < b)

    def _edge(self, a: int, b: int) -> Edge:
        flow, seconds = self.flow[a][b], self.seconds[a] * self.seconds[b]
        weight = -flow * flow / (seconds if seconds > LEAST else LEAST)
        return (weight, a, b) if a < b else (weight, b, a)

    def _lightest(self) -> list[int]:
        """Of the groups that may use the same devices, the two that hold the fewest bytes: if no
        two of these can share a device, no others can."""
        kinds: dict[int, list[int]] = {}
        for group in sorted(self.members, key=lambda group: self.bytes[group]):
            kinds.setdefault(self.allowed[group], []).append(group)
        return [group for groups in kinds.values() for group in groups[:2]]

    def _share(self, a: int, b: int) -> bool:
        """Whether a device may run and can hold both."""
        both = self.allowed[a] & self.allowed[b]
        if self.always_fits or not both:
            return bool(both)
        held = self.bytes[a] + self.bytes[b]
        return any(both >> d & 1 and held <= most for d, most in enumerate(self.capacity))

    def _merge(self, a: int, b: int) -> list[Edge]:
        """Make the two groups one and return its edges that have become heavier."""
        if len(self.flow[a]) < len(self.flow[b]):
            a, b = b, a
        self.members[a] += self.members.pop(b)
        self.seconds[a] += self.seconds[b]
        self.bytes[a] += self.bytes[b]
        self.allowed[a] &= self.allowed[b]
        mine, moved, self.flow[b] = self.flow[a], self.flow[b], {}
        del mine[b], moved[a]
        for other, flow in moved.items():
            row = self.flow[other]
            del row[b]
            mine[other] = row[a] = mine.get(other, 0.0) + flow
        return [self._edge(a, other) for other in moved]


def _bits(allowed: NDArray[np.bool_]) -> int:
    """Devices as the bits of a number, the first the lowest."""
    return int.from_bytes(np.packbits(allowed, bitorder="little").tobytes(), "little")
