"""The Hierarchical Planner's policy: a grouper, and a placer of the sampled groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from situate.data.problem import Problem
from situate.policies.grouper import Grouper
from situate.policies.lstm import Activations
from situate.policies.planner_features import Array, Index
from situate.policies.seq2seq import Memory, Placer, entropy


class Membership:
    """Placements of sampled groups that satisfy every constraint.

    Units join groups, so the ops of a colocation group stay together. A unit with a single possible
    device is in no group; the others are the u *free* units. A group may go to the devices on which
    most of its members can run: their common devices if there are any. A member that cannot follow
    its group goes to the first device on which it can run.

    Args:
        problem: with n ops on d devices.
        count: number g of groups.

    Attributes:
        free: (u,) the free units.
    """

    def __init__(self, problem: Problem, count: int) -> None:
        self._unit = problem.unit
        self._allowed = problem.allowed
        self._count = count
        # (units,) argmax takes the first of equals.
        self._first: Index = problem.allowed.argmax(axis=1)
        self.free: Index = np.flatnonzero(problem.allowed.sum(axis=1) > 1)
        # Pairs (free unit, device that it cannot run on), few in most problems; counting them is
        # cheaper than reducing an array (u, d) for every sample.
        self._misfit, self._missing = np.nonzero(~problem.allowed[self.free])

    def of_ops(self, groups: Index) -> Index:
        """(n,) the group of each op, from the groups (u,) of the free units; g for an op in
        none."""
        return self._of_units(groups)[self._unit]

    def _of_units(self, groups: Index) -> Index:
        units = np.full(len(self._allowed), self._count, np.int64)
        units[self.free] = groups
        return units

    def allowed(self, groups: Index) -> NDArray[np.bool_]:
        """(g, d) devices that groups (u,) may use. An empty group may use the first alone, so
        nothing is drawn or learnt for it."""
        g, d = self._count, self._allowed.shape[1]
        # (group, device) as one number; (g, d) members that could not run there.
        cell = groups[self._misfit] * d + self._missing
        misfits = np.bincount(cell, minlength=g * d).reshape(g, d)
        result = misfits == misfits.min(axis=1, keepdims=True)
        # Rows of groups without members become (True, False, ...): one allowed device has
        # probability 1, so its log-probability and its gradient are 0.
        result[np.bincount(groups, minlength=g) == 0] = np.arange(d) == 0
        return np.asarray(result)

    def place(self, groups: Index, devices: Index) -> NDArray[np.int32]:
        """(n,) the placement with groups (u,) on devices (g,)."""
        device_of_unit = self._first.copy()
        device_of_unit[self.free] = devices[groups]
        can = self._allowed[np.arange(len(device_of_unit)), device_of_unit]
        return np.where(can, device_of_unit, self._first)[self._unit].astype(np.int32)


@dataclass(frozen=True, eq=False)
class HierarchySample:
    """s samples, and the terms of their probabilities.

    Attributes:
        groups: (m, u) groupings of the free units.
        grouping: (s,) number of each sample's grouping.
        memory: the placer's encoding of the groups, one a grouping or one a sample.
        allowed: (s, g, d) devices that the groups may use.
        devices: (s, g) samples.
        activations: activations of the placer's decoder during sampling, if known.
        noises: noise of the grouper's logits (u, g) and of the placer's (s, g, d), where it is
            part of the probabilities.
    """

    groups: Tensor
    grouping: Tensor
    memory: Memory
    allowed: Tensor
    devices: Tensor
    activations: Sequence[Activations] = ()
    noises: tuple[Tensor | None, Tensor | None] = (None, None)


class GroupEmbeddings(Protocol):
    """Embeddings of sampled groups."""

    @property
    def width(self) -> int:
        """The width f of a group's embedding."""
        ...

    def embed(self, group: Index) -> Array:
        """(g, f) embeddings, from the group (n,) of each op."""
        ...


class Hierarchy(nn.Module):
    """p(g; theta_g) p(d | g; theta_d) (Hierarchical Planner, section 2).

    Args:
        grouper: of the free units of `membership`.
        placer: reads the `embeddings` of groups.
        membership, embeddings: of one problem, with as many groups as the grouper.
    """

    def __init__(
        self,
        grouper: Grouper,
        placer: Placer,
        membership: Membership,
        embeddings: GroupEmbeddings,
    ) -> None:
        super().__init__()
        self.grouper = grouper
        self.placer = placer
        self._membership = membership
        self._embeddings = embeddings

    @property
    def groups(self) -> int:
        """Number g of groups."""
        return self.grouper.last.out_features

    def draw(
        self, s: int, placements: int, generator: Generator, noise: float = 0.0
    ) -> HierarchySample:
        """Draw s samples, `placements` of each grouping.

        `objective` can differentiate the placer's encoding as long as the parameters do not change.
        """
        # (s,): 0, 0, ..., 1, 1, ...: `placements` samples share each grouping.
        grouping = torch.arange(s) // placements
        groups = self.grouper.sample(int(grouping[-1]) + 1, generator, noise)
        memory, allowed = self.encode(groups, grouping)
        devices, activations = self.placer.draw(memory, allowed, s, generator, noise)
        return HierarchySample(groups, grouping, memory, allowed, devices, activations)

    def encode(self, groups: Tensor, grouping: Tensor) -> tuple[Memory, Tensor]:
        """`memory` and `allowed` of a `HierarchySample`, from its groups and grouping."""
        group_rows = groups.numpy()
        embeddings_of_rows = [
            self._embeddings.embed(self._membership.of_ops(row)) for row in group_rows
        ]
        embeddings = torch.from_numpy(np.stack(embeddings_of_rows)).to(self.placer.embedding.weight)
        allowed = torch.from_numpy(np.stack([self._membership.allowed(row) for row in group_rows]))
        return _sample_memory(self.placer.encode(embeddings), grouping), allowed[grouping]

    def expand(self, sample: HierarchySample) -> NDArray[np.int32]:
        """Placements (s, n)."""
        groups = sample.groups.numpy()[sample.grouping.numpy()]
        rows = zip(groups, sample.devices.numpy(), strict=True)
        return np.stack([self._membership.place(*row) for row in rows])

    def objective(
        self, sample: HierarchySample, advantage: Tensor, entropy_weight: float = 0.0
    ) -> Tensor:
        """1/s sum_i A_i (log p(g_i; theta_g) + log p(d_i | g_i; theta_d)) + entropy_weight H.

        Its gradient is the poster's two estimators, with A (s,) for R. H is the entropy of the
        placer's distributions.
        """
        weights = advantage / len(advantage)
        # (s,) to (m,): a grouping's weight is the sum over the samples that place it, as its
        # probability stands in the objective once for each of them.
        of_grouping = weights.new_zeros(len(sample.groups)).index_add(0, sample.grouping, weights)
        log_p = self.placer.log_probs(
            sample.memory, sample.devices, sample.allowed, sample.activations
        )
        # (s, g, d) to (s, g, 1), the drawn devices alone, to (s,) log-probabilities of whole
        # placements.
        of_placement = log_p.gather(2, sample.devices.unsqueeze(2)).sum((1, 2))
        objective = self.grouper.log_prob(sample.groups, of_grouping) + of_placement @ weights
        return objective + entropy_weight * entropy(log_p) if entropy_weight else objective


def _sample_memory(memory: Memory, grouping: Tensor) -> Memory:
    """The memory of every sample, from that of every grouping; a single one stays single."""
    if len(memory.outputs) == 1:
        return memory
    hidden, cell = (state[:, grouping] for state in memory.state)
    own = memory.own if len(memory.own) == 1 else memory.own[grouping]
    return Memory(memory.outputs[grouping], memory.keys[grouping], own, (hidden, cell))
