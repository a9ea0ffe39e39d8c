"""Features that the Hierarchical Planner's released controller reads: of units and of groups.

A graph holds the bytes of tensors and not their dimensions. So log2(1 + bytes) of an output stands
in the first of its five places, and the other four are as the release leaves missing dimensions.
"""

from __future__ import annotations

import numpy as np

from situate.data.problem import Problem
from situate.data.topology import edge_producers, places
from situate.policies.planner_features import MAX_OUTPUTS, Array, Index, OpFeatures

DIMENSIONS = 5
"""Places of an output's dimensions."""

NEIGHBOURS = 10
"""Neighbours of an op in its features, two numbers each: its place and the edge's direction."""

MISSING = -1.0
"""Value of a missing dimension in the features of an op; in those of a group it is 0."""


def released_unit_features(problem: Problem, ops: OpFeatures) -> Array:
    """(u, 46) features of every unit, those of its first op: the number of its type, its outputs,
    and its neighbours. None of them is scaled."""
    first = np.unique(problem.unit, return_index=True)[1]
    outputs = _shapes(ops)
    outputs[outputs == 0] = MISSING
    table = np.hstack((ops.kind[:, None], outputs, _neighbours(problem)))
    return np.asarray(table[first], np.float32)


def _shapes(ops: OpFeatures) -> Array:
    """(n, 25) log2(1 + bytes) of each of five outputs, then four zeros."""
    result = np.zeros((len(ops.kind), MAX_OUTPUTS * DIMENSIONS), np.float32)
    # `OpFeatures` divides logarithms by 32, and the release scales nothing.
    result[:, ::DIMENSIONS] = 32 * ops.outputs[:, :MAX_OUTPUTS]
    return result


def _neighbours(problem: Problem) -> Array:
    """(n, 20): the op's last producer with -1, then its consumers with 1, in the graph's order.

    The release forgets an op's earlier neighbours with each of its producers, so that the last
    producer alone remains.
    """
    place = places(problem.graph.order)
    source, target = edge_producers(problem).astype(np.int64), problem.consumers.astype(np.int64)
    # Edges in the order in which the release lists them: by producer, then by consumer.
    order = np.lexsort((place[target], place[source]))
    lists: list[list[float]] = [[] for _ in range(problem.n)]
    for a, b in zip(source[order].tolist(), target[order].tolist(), strict=True):
        lists[a] += [float(place[b]), 1.0]
        lists[b] = [float(place[a]), -1.0]
    result = np.zeros((problem.n, 2 * NEIGHBOURS), np.float32)
    for op, numbers in enumerate(lists):
        result[op, : len(numbers)] = numbers[: 2 * NEIGHBOURS]
    return result


class ReleasedGroupFeatures:
    """Embeddings of sampled groups as the release makes them.

    Args:
        problem: with n ops.
        ops: their features.
        count: number g of groups. An op whose group is g or above is in none.
    """

    def __init__(self, problem: Problem, ops: OpFeatures, count: int) -> None:
        self._kind, self._kinds = ops.kind, ops.kinds
        self._shapes = _shapes(ops)
        self._count = count
        self._source = edge_producers(problem).astype(np.int64)
        self._target = problem.consumers.astype(np.int64)

    @property
    def width(self) -> int:
        """The width f of a group's embedding."""
        return 2 * self._count + self._kinds + int(self._shapes.shape[1])

    def embed(self, group: Index) -> Array:
        """(g, f) embeddings, from the group (n,) of each op.

        An embedding joins the numbers of edges to and from every group, and the sum over its ops
        of their types and outputs. Types and outputs begin at the same column, so that they add
        up. All of a row is divided by its largest entry and one.
        """
        g = self._count
        grouped = group < g
        source, target = group[self._source], group[self._target]
        inside = (source < g) & (target < g)
        edges = np.zeros((g, g))
        np.add.at(edges, (source[inside], target[inside]), 1.0)
        sums = np.zeros((g, self._kinds + self._shapes.shape[1]))
        np.add.at(sums, (group[grouped], self._kind[grouped]), 1.0)
        shapes = np.stack(
            [np.bincount(group[grouped], c[grouped], g)[:g] for c in self._shapes.T], axis=1
        )
        sums[:, : shapes.shape[1]] += shapes
        table = np.hstack((edges, edges.T, sums))
        return np.asarray(table / (table.max(axis=1, keepdims=True) + 1), np.float32)
