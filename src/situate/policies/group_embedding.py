"""Embeddings of groups that change from sample to sample, for the Hierarchical Planner's placer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.data.topology import edge_producers
from situate.policies.op_features import Array, Index, OpFeatures


class SampledGroups:
    """Embeddings of sampled groups (Hierarchical Planner, section 1), in one pass over the ops and
    one over the edges.

    Args:
        problem: of n ops.
        ops: their features.
        count: number g of groups. Ops whose group is g or above are in none.
    """

    def __init__(self, problem: Problem, ops: OpFeatures, count: int) -> None:
        self._ops = ops
        self._count = count
        self._kinds = ops.kinds
        tensor = edge_producers(problem)
        self._source, self._target = tensor.astype(np.int64), problem.consumers.astype(np.int64)

    @property
    def width(self) -> int:
        """f."""
        return self._kinds + int(self._ops.outputs.shape[1]) + 2 * self._count

    def embed(self, group: Index) -> Array:
        """(g, f) from the group (n,) of each op.

        The shares of types among a group's ops (the LSTM's input matrix holds the types'
        embeddings, so it reads their mean), the mean of sizes and numbers of outputs, and how many
        edges go to and come from every group, its own included, over one more than the most of
        any. Zeros for a group without ops.
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
        both = np.hstack((edges, edges.T))
        return np.asarray(both / (both.max(axis=1, keepdims=True) + 1))

    def _sum(self, cell: Index, width: int) -> NDArray[np.int64]:
        """(g, width) how often each cell comes."""
        size = self._count * width
        return np.bincount(cell, minlength=size)[:size].reshape(self._count, width)
