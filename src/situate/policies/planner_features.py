"""Features that the Hierarchical Planner reads: of ops, of units and of sampled groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.data.topology import edge_producers, edge_tensors, places

Array = NDArray[np.float32]
Index = NDArray[np.int64]

MAX_OUTPUTS = 5
"""Output sizes in an op's features, the largest first, as in the released controller."""

MAX_NEIGHBOURS = 5
"""Inputs, and as many consumers, in a unit's features; the released controller has ten neighbours
in all."""


@dataclass(frozen=True, eq=False)
class OpFeatures:
    """Features of n ops.

    Attributes:
        kind: (n,) number of the op's type; types are numbered by their first op.
        kinds: number of types.
        outputs: (n, MAX_OUTPUTS + 1) log2(1 + bytes) / 32 of the largest outputs, zeros after the
            last, then log2(1 + number of outputs).
    """

    kind: Index
    kinds: int
    outputs: Array


def op_features(problem: Problem) -> OpFeatures:
    """Types and outputs of a problem's ops."""
    index: dict[str, int] = {}
    kind = np.array([index.setdefault(op.kind, len(index)) for op in problem.graph.ops], np.int64)
    return OpFeatures(kind, len(index), _outputs(problem))


def _outputs(problem: Problem) -> Array:
    """(n, MAX_OUTPUTS + 1) of the graph's own tensors; control edges, which follow them, do not
    count."""
    own = len(problem.graph.tensors)
    producer, size = problem.producer[:own].astype(np.int64), problem.size[:own]
    result = np.zeros((problem.n, MAX_OUTPUTS + 1), np.float32)
    # By producer, then by size from the largest; the last key of lexsort is the first to count.
    order = np.lexsort((-size, producer))
    rank = _rank_among_equals(producer[order], problem.n)
    listed = order[rank < MAX_OUTPUTS]
    # In log2, so that sizes of up to 4 GiB lie between 0 and 1.
    result[producer[listed], rank[rank < MAX_OUTPUTS]] = np.log2(1.0 + size[listed]) / 32
    result[:, MAX_OUTPUTS] = np.log2(1.0 + np.bincount(producer, minlength=problem.n))
    return result


def unit_features(problem: Problem, ops: OpFeatures) -> Array:
    """(u, f) features of every unit: the shares of the types among its ops, the mean of their
    outputs, and the positions of its inputs and consumers in the graph's order."""
    members = np.bincount(problem.unit, minlength=problem.units)[:, None]
    kinds = np.zeros((problem.units, ops.kinds), np.float32)
    np.add.at(kinds, (problem.unit, ops.kind), 1.0)
    outputs = np.zeros((problem.units, MAX_OUTPUTS + 1), np.float32)
    np.add.at(outputs, problem.unit, ops.outputs)
    return np.hstack((kinds / members, outputs / members, _connections(problem)), dtype=np.float32)


def _connections(problem: Problem) -> Array:
    """(u, 2 MAX_NEIGHBOURS) positions between 0 and 1."""
    # place (n,): rank in the graph's order over n; a unit stands where its earliest op does.
    place = places(problem.graph.order) / problem.n
    position = np.ones(problem.units)
    np.minimum.at(position, problem.unit, place)
    # Compressed rows to edges (e,) of units: one entry for every consumer of a tensor.
    tensor = edge_tensors(problem)
    source = problem.unit[problem.producer[tensor]].astype(np.int64)
    target = problem.unit[problem.consumers].astype(np.int64)
    leaves = source != target
    source, target, size = source[leaves], target[leaves], problem.size[tensor[leaves]]
    inputs = _nearest(target, source, size, position)
    return np.hstack((inputs, _nearest(source, target, size, position)), dtype=np.float32)


def _nearest(unit: Index, other: Index, size: Index, position: NDArray[np.float64]) -> Array:
    """(u, MAX_NEIGHBOURS) positions of the units with which a unit exchanges its largest tensors;
    its own position fills the rest."""
    # Edges by unit, then from the largest tensor; equal sizes by the neighbour's number, so that
    # the order does not hang on how edges were listed.
    order = np.lexsort((other, -size, unit))
    rank = _rank_among_equals(unit[order], len(position))
    listed = order[rank < MAX_NEIGHBOURS]
    # (u,) to (u, NEIGHBOURS), each row filled with the unit's own position.
    result = np.repeat(position[:, None], MAX_NEIGHBOURS, axis=1)
    result[unit[listed], rank[rank < MAX_NEIGHBOURS]] = position[other[listed]]
    return result.astype(np.float32)


def _rank_among_equals(ordered: Index, count: int) -> Index:
    """Each entry's rank among its equals, in an ascending list of numbers below `count`."""
    # Equals are neighbours, so the place of the first of them is subtracted.
    return np.arange(len(ordered)) - np.searchsorted(ordered, np.arange(count))[ordered]


class SampledGroupFeatures:
    """Embeddings of sampled groups (Hierarchical Planner, section 1), computed in one pass over the
    ops and one over the edges.

    Args:
        problem: with n ops.
        ops: their features.
        count: number g of groups. An op whose group is g or above is in none.
    """

    def __init__(self, problem: Problem, ops: OpFeatures, count: int) -> None:
        self._ops = ops
        self._count = count
        self._kinds = ops.kinds
        tensor = edge_producers(problem)
        self._source, self._target = tensor.astype(np.int64), problem.consumers.astype(np.int64)

    @property
    def width(self) -> int:
        """The width f of a group's embedding."""
        return self._kinds + int(self._ops.outputs.shape[1]) + 2 * self._count

    def embed(self, group: Index) -> Array:
        """(g, f) embeddings, from the group (n,) of each op; zeros for an empty group.

        An embedding joins three parts: the shares of types among the group's ops, the mean sizes
        and number of outputs, and the numbers of edges to and from every group, its own included,
        over the largest number plus one. The LSTM's input matrix holds the types' embeddings, so it
        reads their mean.
        """
        g, kinds = self._count, self._kinds
        # (g, 1): bincount may give more than g cells, for ops in no group; an empty group divides
        # by 1.
        members = np.maximum(np.bincount(group, minlength=g)[:g], 1)[:, None]
        # The cell (group, type) as one number; cells of ops in no group lie behind all others and
        # are cut off.
        types = self._sum(group * kinds + self._ops.kind, kinds)
        outputs = [np.bincount(group, column, g)[:g] for column in self._ops.outputs.T]
        means = np.hstack((types, np.stack(outputs, axis=1))) / members
        return np.hstack((means, self._adjacency(group)), dtype=np.float32)

    def _adjacency(self, group: Index) -> NDArray[np.float64]:
        g = self._count
        source, target = group[self._source], group[self._target]
        inside = (source < g) & (target < g)
        # (g, g): edges[a, b] counts edges from a to b. Transposed beside it, a row has those that
        # come in too: (g, 2 g).
        edges = self._sum(source[inside] * g + target[inside], g)
        neighbours = np.hstack((edges, edges.T))
        return np.asarray(neighbours / (neighbours.max(axis=1, keepdims=True) + 1))

    def _sum(self, cell: Index, width: int) -> NDArray[np.int64]:
        """(g, width) number of occurrences of each cell."""
        size = self._count * width
        return np.bincount(cell, minlength=size)[:size].reshape(self._count, width)
