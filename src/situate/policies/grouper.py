"""The Hierarchical Planner's grouper: a feed-forward network and a softmax over groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Generator, Tensor, nn

BLOCK = 2048
"""Units whose probabilities are held at once: with 256 groups they stay in a core's cache."""


class Grouper(nn.Module):
    """p(g; theta_g): every unit draws its group on its own (Hierarchical Planner, section 2).

    Sampling and gradients go block by block, since the probabilities of 80,000 units over 256
    groups are 80 MB that need never exist at once.

    Args:
        features: (u, f) of the units.
        groups: number g of groups.
        hidden: width h of the one hidden layer.
        generator: draws the initial weights (X. Glorot, Y. Bengio, AISTATS 2010, Eq. 16).
        relu: whether hidden units are rectified; the released controller's are linear.
        start: (u,) groups that the grouper begins with, or None.
        trust: what is added to the logit of a unit's group in `start`; the last layer is zero
            then, so that `start` alone decides at first.
    """

    features: Tensor

    def __init__(
        self,
        features: Tensor,
        groups: int,
        hidden: int,
        generator: Generator,
        *,
        relu: bool = False,
        start: Tensor | None = None,
        trust: float = 0.0,
    ) -> None:
        super().__init__()
        self.register_buffer("features", features)
        with torch.device("meta"):
            self.first = nn.Linear(features.shape[1], hidden)
            self.last = nn.Linear(hidden, groups)
        self.first.to_empty(device="cpu").float()
        self.last.to_empty(device="cpu").float()
        self._initialise(generator, uniform=start is not None)
        self._relu = relu
        self._start, self._trust = start, trust

    def _initialise(self, generator: Generator, uniform: bool) -> None:
        nn.init.xavier_uniform_(self.first.weight, generator=generator)
        nn.init.xavier_uniform_(self.last.weight, generator=generator)
        nn.init.zeros_(self.first.bias)
        nn.init.zeros_(self.last.bias)
        if uniform:
            nn.init.zeros_(self.last.weight)

    @torch.no_grad()
    def sample(self, m: int, generator: Generator, noise: float = 0.0) -> Tensor:
        """Groups (m, u) of m samples.

        Args:
            m: number of samples.
            generator: of the draws.
            noise: standard deviation of what is added to the logits of the draws, the same for all
                m, relative to the root mean square of the unit's logits.
        """
        groups = torch.empty(m, len(self.features), dtype=torch.int64)
        layer = self.last.weight, self.last.bias, self._start, self._trust
        for rows, logits in _logits(self.hidden(), *layer):
            groups[:, rows] = self._draw(logits, m, generator, noise).t()
        return groups

    @staticmethod
    def _draw(logits: Tensor, m: int, generator: Generator, noise: float) -> Tensor:
        """(rows, m) by inversion: the first group whose cumulative probability exceeds a uniform
        number."""
        if noise:
            size = noise * logits.square().mean(1, keepdim=True).sqrt()
            logits = logits.addcmul(torch.empty_like(logits).normal_(generator=generator), size)
        below = torch.softmax(logits, 1).cumsum(1)
        uniform = torch.empty(len(logits), m, dtype=logits.dtype).uniform_(generator=generator)
        drawn = torch.searchsorted(below, uniform * below[:, -1:], right=True)
        return drawn.clamp_(max=logits.shape[1] - 1)

    def hidden(self) -> Tensor:
        """(u, h) the hidden layer."""
        hidden: Tensor = self.first(self.features)
        return torch.relu(hidden) if self._relu else hidden

    def log_prob(self, groups: Tensor, weights: Tensor) -> Tensor:
        """The sum over samples i of w_i log p(g_i; theta_g), a number to differentiate.

        Args:
            groups: (m, u) the samples.
            weights: (m,) w.
        """
        total: Tensor = _LogProb.apply(  # type: ignore[no-untyped-call]
            self.hidden(),
            self.last.weight,
            self.last.bias,
            self._start,
            self._trust,
            groups,
            weights,
        )
        return total


def _logits(
    hidden: Tensor, weight: Tensor, bias: Tensor, start: Tensor | None, trust: float
) -> Iterator[tuple[slice, Tensor]]:
    """Rows of the logits (u, g), block by block."""
    for first in range(0, len(hidden), BLOCK):
        rows = slice(first, first + BLOCK)
        logits = torch.addmm(bias, hidden[rows], weight.t())
        if start is not None:
            logits[torch.arange(len(logits)), start[rows]] += trust
        yield rows, logits


class _LogProb(torch.autograd.Function):
    """`Grouper.log_prob`, with its gradient made in the same pass.

    With l the logits of a unit and n_j the weights of the samples that put it into group j, the
    gradient of sum_i w_i log p(g_i) by l_j is n_j - p_j sum_i w_i.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        start: Tensor | None,
        trust: float,
        groups: Tensor,
        weights: Tensor,
    ) -> Tensor:
        of_hidden = torch.empty_like(hidden)
        of_weight, of_bias = torch.zeros_like(weight), torch.zeros_like(bias)
        total, sample_of_unit = hidden.new_zeros(()), groups.t()
        for rows, logits in _logits(hidden, weight, bias, start, trust):
            drawn = sample_of_unit[rows]
            total += (torch.log_softmax(logits, 1).gather(1, drawn) @ weights).sum()
            slope = torch.softmax(logits, 1).mul_(-weights.sum())
            slope.scatter_add_(1, drawn, weights.expand(len(drawn), -1))
            of_hidden[rows] = slope @ weight
            of_weight.addmm_(slope.t(), hidden[rows])
            of_bias += slope.sum(0)
        ctx.save_for_backward(of_hidden, of_weight, of_bias)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        scale = gradients[0]
        of_hidden, of_weight, of_bias = (scale * saved for saved in ctx.saved_tensors)
        return of_hidden, of_weight, of_bias, None, None, None, None
