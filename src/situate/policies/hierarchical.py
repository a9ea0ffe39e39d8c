"""The Hierarchical Planner's policy: a grouper, and a placer of the groups that it draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from situate.policies.entropy import entropy
from situate.policies.group_embedding import SampledGroups
from situate.policies.grouper import Grouper
from situate.policies.lstm import Activations
from situate.policies.membership import Membership
from situate.policies.seq2seq import Memory, Placer


@dataclass(frozen=True, eq=False)
class Drawn:
    """s samples and what their probabilities are made of.

    Attributes:
        groups: (m, u) groupings of the free units.
        grouping: (s,) the number of the grouping that each sample places.
        memory: the groups of every grouping, or of every sample, as the placer encoded them.
        allowed: (s, g, d) devices that the groups may go to.
        devices: (s, g) samples.
        activations: activations of the placer's decoder when it drew them, if they are known.
    """

    groups: Tensor
    grouping: Tensor
    memory: Memory
    allowed: Tensor
    devices: Tensor
    activations: Sequence[Activations] = ()


class Hierarchy(nn.Module):
    """p(g; theta_g) p(d | g; theta_d) (Hierarchical Planner, section 2).

    Args:
        grouper: of the free units of `membership`.
        placer: reads what `embeddings` says of groups.
        membership, embeddings: of one problem, and as many groups as the grouper has.
    """

    def __init__(
        self, grouper: Grouper, placer: Placer, membership: Membership, embeddings: SampledGroups
    ) -> None:
        super().__init__()
        self.grouper = grouper
        self.placer = placer
        self._membership = membership
        self._embeddings = embeddings

    def draw(self, s: int, placements: int, generator: Generator, noise: float = 0.0) -> Drawn:
        """Draw s samples, `placements` of each grouping.

        What the placer made of the groups can be differentiated, for `objective`, as long as the
        parameters do not change.
        """
        # (s,): 0, 0, ..., 1, 1, ...: `placements` samples share each grouping.
        grouping = torch.arange(s) // placements
        groups = self.grouper.sample(int(grouping[-1]) + 1, generator, noise)
        memory, allowed = self.read(groups, grouping)
        devices, activations = self.placer.draw(memory, allowed, s, generator, noise)
        return Drawn(groups, grouping, memory, allowed, devices, activations)

    def read(self, groups: Tensor, grouping: Tensor) -> tuple[Memory, Tensor]:
        """`memory` and `allowed` of a `Drawn`, from the two before them."""
        each = groups.numpy()
        embedded = [self._embeddings.embed(self._membership.of_ops(row)) for row in each]
        embeddings = torch.from_numpy(np.stack(embedded)).to(self.placer.embedding.weight)
        allowed = torch.from_numpy(np.stack([self._membership.allowed(row) for row in each]))
        return _each(self.placer.encode(embeddings), grouping), allowed[grouping]

    def expand(self, drawn: Drawn) -> NDArray[np.int32]:
        """Placements (s, n)."""
        groups = drawn.groups.numpy()[drawn.grouping.numpy()]
        samples = zip(groups, drawn.devices.numpy(), strict=True)
        return np.stack([self._membership.place(*sample) for sample in samples])

    def objective(self, drawn: Drawn, advantage: Tensor, entropy_weight: float = 0.0) -> Tensor:
        """1/s sum_i A_i (log p(g_i; theta_g) + log p(d_i | g_i; theta_d)), whose gradient is the
        poster's two estimators with A (s,) for R; plus so many times the entropy of the placer's
        distributions."""
        weights = advantage / len(advantage)
        # (s,) to (m,): a grouping's weight is the sum over the samples that place it, as its
        # probability stands in the objective once for each of them.
        of_grouping = weights.new_zeros(len(drawn.groups)).index_add(0, drawn.grouping, weights)
        log_p = self.placer.log_probs(drawn.memory, drawn.devices, drawn.allowed, drawn.activations)
        # (s, g, d) to (s, g, 1), the drawn devices alone, to (s,) log-probabilities of whole
        # placements.
        of_placement = log_p.gather(2, drawn.devices.unsqueeze(2)).sum((1, 2))
        objective = self.grouper.log_prob(drawn.groups, of_grouping) + of_placement @ weights
        return objective + entropy_weight * entropy(log_p) if entropy_weight else objective


def _each(memory: Memory, grouping: Tensor) -> Memory:
    """The memory of every sample, from that of every grouping; one alone stays one."""
    if len(memory.outputs) == 1:
        return memory
    hidden, cell = (state[:, grouping] for state in memory.state)
    own = memory.own if len(memory.own) == 1 else memory.own[grouping]
    return Memory(memory.outputs[grouping], memory.keys[grouping], own, (hidden, cell))
