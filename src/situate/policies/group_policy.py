"""A sequence-to-sequence policy over the groups of one problem, and the features it reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from situate.data.problem import Problem
from situate.grouping import Groups
from situate.policies.seq2seq import Placer
from situate.policies.shapes import Shape

Array = NDArray[np.float32]

MAX_OUTPUTS = 8
"""Most outputs of a group in its features, the largest first."""

TYPE_WIDTH = 16
"""Width of the trainable embedding of a kind of op."""


@dataclass(frozen=True, eq=False)
class GroupFeatures:
    """Features of g groups (ColocRL, section 3; see docs/methods/colocrl.md).

    Attributes:
        kinds: (g, kinds) the share of each kind of op among the group's ops.
        outputs: (g, MAX_OUTPUTS) sizes of the largest tensors that leave the group.
        adjacency: (g, 2 g) one where the group reads from another, then where another reads from
            it.
    """

    kinds: Array
    outputs: Array
    adjacency: Array


def group_features(problem: Problem, groups: Groups) -> GroupFeatures:
    """The features of a problem's groups."""
    crossing, edges = _crossing_tensors(problem, groups)
    return GroupFeatures(_kinds(problem, groups), _outputs(problem, groups, crossing), edges)


def _kinds(problem: Problem, groups: Groups) -> Array:
    """(g, kinds) shares; kinds are numbered by their first op."""
    index: dict[str, int] = {}
    kind = np.array([index.setdefault(op.kind, len(index)) for op in problem.graph.ops])
    # (g, kinds): `np.add.at` counts every op, where plain indexing would count equal cells once.
    counts = np.zeros((len(groups), len(index)), np.float32)
    np.add.at(counts, (groups.of_op, kind), 1.0)
    counts /= counts.sum(axis=1, keepdims=True)
    return counts


def _crossing_tensors(problem: Problem, groups: Groups) -> tuple[NDArray[np.bool_], Array]:
    """(m,) true for a tensor that leaves its producer's group; and the groups' adjacency."""
    g, lengths = len(groups), np.diff(problem.consumer_start)
    # Compressed rows to a list of edges: tensor, source, target (e,), one entry for every consumer
    # of a tensor; source and target are groups.
    tensor = np.repeat(np.arange(len(lengths)), lengths)
    source = groups.of_op[problem.producer[tensor]]
    target = groups.of_op[problem.consumers]
    leaves = np.zeros(len(lengths), np.bool_)
    leaves[tensor[source != target]] = True
    adjacency = np.zeros((g, 2 * g), np.float32)
    source, target = source[source != target], target[source != target]
    # Columns 0..g-1: groups that the row reads from; columns g..2g-1: groups that read it.
    adjacency[target, source] = 1.0
    adjacency[source, g + target] = 1.0
    return leaves, adjacency


def _outputs(problem: Problem, groups: Groups, leaves: NDArray[np.bool_]) -> Array:
    """(g, MAX_OUTPUTS) log2(1 + bytes) / 32, zeros after the last output."""
    result = np.zeros((len(groups), MAX_OUTPUTS), np.float32)
    listed = np.zeros(len(groups), np.int64)
    # Largest first over all tensors, so that each group's list comes out sorted; equal sizes keep
    # the graph's order.
    for tensor in np.argsort(-problem.size, kind="stable"):
        group = groups.of_op[problem.producer[tensor]]
        if leaves[tensor] and listed[group] < MAX_OUTPUTS:
            result[group, listed[group]] = np.log2(1.0 + problem.size[tensor]) / 32
            listed[group] += 1
    return result


class GroupEmbedding(nn.Module):
    """The mean embedding of the ops' kinds, followed by outputs and adjacency.

    Args:
        features: of the groups.
        generator: draws the embeddings of kinds from a normal distribution.
    """

    def __init__(self, features: GroupFeatures, generator: Generator) -> None:
        super().__init__()
        self._kinds = torch.from_numpy(features.kinds)
        # (g, OUTPUTS + 2 g): fixed features are joined in advance, so that a forward pass joins
        # two matrices.
        self._rest = torch.from_numpy(np.hstack((features.outputs, features.adjacency)))
        types = torch.empty(self._kinds.shape[1], TYPE_WIDTH, dtype=torch.float32)
        self.types = nn.Parameter(types.normal_(generator=generator))

    @property
    def width(self) -> int:
        """The width f of a group's embedding."""
        return TYPE_WIDTH + self._rest.shape[1]

    def forward(self) -> Tensor:
        """(g, f) embeddings."""
        return torch.cat([self._kinds @ self.types, self._rest], 1)


class GroupPolicy(nn.Module):
    """Distributions over the devices of all groups; initially uniform.

    Args:
        problem: with d devices.
        groups: g of them.
        shape: of the networks.
        generator: draws the initial parameters.
    """

    def __init__(
        self, problem: Problem, groups: Groups, shape: Shape, generator: Generator
    ) -> None:
        super().__init__()
        self.allowed = torch.from_numpy(groups.allowed)
        self.embedding = GroupEmbedding(group_features(problem, groups), generator)
        self.placer = Placer(
            self.embedding.width,
            problem.d,
            shape.hidden,
            shape.layers,
            generator=generator,
            score=shape.score,
            width=shape.width,
            aligned=shape.aligned,
        )

    @torch.no_grad()
    def sample(self, k: int, generator: Generator) -> Tensor:
        """(k, g) sampled devices."""
        memory = self.placer.encode(self.embedding())
        return self.placer.sample(memory, self.allowed, k, generator)

    def log_probs(self, devices: Tensor) -> Tensor:
        """(k, g, d) for devices (k, g); see `Placer.log_probs`."""
        memory = self.placer.encode(self.embedding())
        return self.placer.log_probs(memory, devices, self.allowed)
