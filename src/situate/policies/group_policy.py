"""A sequence-to-sequence policy over the groups of one problem."""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn

from situate.data.problem import Problem
from situate.grouping import Groups
from situate.policies.embeddings import GroupEmbedding, features
from situate.policies.seq2seq import Placer
from situate.policies.shape import Shape


class GroupPolicy(nn.Module):
    """Distributions over the devices of all groups; begins as uniform ones.

    Args:
        problem: of d devices.
        groups: g of them.
        shape: of the networks.
        generator: draws the initial parameters.
    """

    def __init__(
        self, problem: Problem, groups: Groups, shape: Shape, generator: Generator
    ) -> None:
        super().__init__()
        self.allowed = torch.from_numpy(groups.allowed)
        self.embedding = GroupEmbedding(features(problem, groups), generator)
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
        """Devices (k, g)."""
        memory = self.placer.encode(self.embedding())
        return self.placer.sample(memory, self.allowed, k, generator)

    def log_probs(self, devices: Tensor) -> Tensor:
        """(k, g, d) for devices (k, g); see `Placer.log_probs`."""
        memory = self.placer.encode(self.embedding())
        return self.placer.log_probs(memory, devices, self.allowed)
