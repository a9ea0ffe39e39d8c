"""Partitions by METIS's recursive bisection, with integer weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Ints
from situate.errors import MissingExtra, SituateError

# Weights as integers, for partitioners that know no others.
LARGEST_SUM = 2**30
"""Largest sum of integer weights: the partitioners may count in 32 bits, with a sign."""


def as_integers(
    values: NDArray[np.float64] | NDArray[np.int64], most: int = LARGEST_SUM
) -> NDArray[np.int64]:
    """Integers in proportion to values of at least 0.

    Each is at least 1. Their sum is at most `most`, or the number of values if that is larger. All
    are 1 if all values are 0.
    """
    largest = values.max(initial=0.0)
    if largest <= 0:
        return np.ones(len(values), np.int64)
    # Divided by the largest first, so that the sum cannot overflow. One of each value is set aside
    # as its lower limit of 1; only the rest of `most` is dealt out in proportion.
    share = values / largest
    room = max(0, most - len(values))
    return np.asarray(np.maximum(1, np.floor(share * (room / share.sum()))), np.int64)


# METIS: a weighted graph in parts of given shares, by recursive bisection.
@dataclass(frozen=True, eq=False)
class WeightedGraph:
    """An undirected graph of n vertices, with each edge in both directions.

    Attributes:
        rows: (e,) first vertex of each edge, ascending.
        neighbour: (e,) second vertex.
        weight: (e,) at least 1, the same in both directions.
        load: (n,) of the vertices, at least 0.
    """

    rows: Ints
    neighbour: Ints
    weight: Ints
    load: Ints

    def check(self) -> None:
        """Refuse input that METIS would accept silently.

        Raises:
            SituateError: a weight or a load is missing or too small, or an edge leads out of the
                graph, leads to its own vertex, or lacks its reverse.
        """
        ends, n = np.concatenate((self.rows, self.neighbour)), len(self.load)
        if not len(self.rows) == len(self.neighbour) == len(self.weight):
            raise SituateError("METIS: edges of the graph have no end or no weight")
        if (self.weight < 1).any() or (self.load < 0).any():
            raise SituateError("METIS: a weight of the graph is too small")
        if ((ends < 0) | (ends >= n)).any() or (self.rows == self.neighbour).any():
            raise SituateError("METIS: an edge of the graph leads nowhere")
        if (np.diff(self.rows) < 0).any() or not self._symmetric():
            raise SituateError("METIS: an edge of the graph is not the same in both directions")

    def _symmetric(self) -> bool:
        # Edges (e,) sorted by (begin, end) and by (end, begin): the graph is symmetric if the first
        # list reversed edge by edge is the second. Weights break ties between repeated edges.
        there = np.lexsort((self.weight, self.neighbour, self.rows))
        back = np.lexsort((self.weight, self.rows, self.neighbour))
        return (
            np.array_equal(self.rows[there], self.neighbour[back])
            and np.array_equal(self.neighbour[there], self.rows[back])
            and np.array_equal(self.weight[there], self.weight[back])
        )

    def within(self, inside: NDArray[np.bool_]) -> WeightedGraph:
        """The vertices that are inside (n,), and the edges among them."""
        # (n,) old number of a vertex to its new one; only read where `inside` holds.
        number = np.cumsum(inside) - 1
        is_inside = inside[self.rows] & inside[self.neighbour]
        return WeightedGraph(
            number[self.rows[is_inside]],
            number[self.neighbour[is_inside]],
            self.weight[is_inside],
            self.load[inside],
        )

    def bisect(self, share: float) -> Ints:
        """The side (n,), 0 or 1, of each vertex; side 0 is to have this share of the load."""
        try:
            import pymetis
        except ImportError as error:
            raise MissingExtra("pymetis", "baselines") from error
        # Compressed rows: rows (e,) are ascending, so row v is where v first stands in them.
        start = np.searchsorted(self.rows, np.arange(len(self.load) + 1))
        _, side = pymetis.part_graph(
            2,
            pymetis.CSRAdjacency(start, self.neighbour),
            vweights=self.load,
            eweights=self.weight,
            tpwgts=[share, 1 - share],
            recursive=True,
        )
        return np.array(side, np.int64)


def partition(graph: WeightedGraph, share: NDArray[np.float64]) -> Ints:
    """The part (n,) of each vertex; part i gets about `share[i]` (k,) of the load.

    METIS bisects the graph, and each side again, until there are k parts. This function asks for
    each bisection, because METIS's own recursion prints to the screen when a part has no vertices
    left.

    Raises:
        MissingExtra: pymetis is not installed.
        SituateError: invalid input for METIS, see `WeightedGraph.check`.
    """
    graph.check()
    return _parts(graph, share)


def _parts(graph: WeightedGraph, share: NDArray[np.float64]) -> Ints:
    if len(share) == 1 or len(graph.load) < 2:
        return np.full(len(graph.load), int(share.argmax()))
    # Side 0 gets the first half of the parts; METIS is asked for the share that they have of these
    # parts' load, not of the whole graph's.
    half = len(share) // 2
    side = graph.bisect(float(share[:half].sum() / share.sum()))
    part = np.empty(len(side), np.int64)
    part[side == 0] = _parts(graph.within(side == 0), share[:half])
    part[side == 1] = _parts(graph.within(side == 1), share[half:]) + half
    return part
