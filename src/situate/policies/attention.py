"""Content-based attention: where in the encoder's outputs a step of the decoder looks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from situate.policies.shape import Score

BLOCK = 2**18
"""Numbers that a block of the additive score holds at once: they stay in a core's cache."""


class Attention(nn.Module):
    """Weights over the g outputs of an encoder for every query, and what they sum to.

    Args:
        hidden: width h of queries and outputs.
        score: `additive`, v . tanh(W s + U h) (Bahdanau et al., ICLR 2015, A.1.2), or `general`,
            s . U h (Luong et al., EMNLP 2015, Eq. 8), which costs a small part of it.
        width: a of the space in which an additive score compares; the other compares in h.
    """

    def __init__(self, hidden: int, score: Score, width: int) -> None:
        super().__init__()
        self.key = nn.Linear(hidden, width if score == "additive" else hidden, bias=False)
        self.query = nn.Linear(hidden, width, bias=False) if score == "additive" else None
        self.v = nn.Parameter(torch.empty(width)) if score == "additive" else None

    def keys(self, outputs: Tensor) -> Tensor:
        """(b, g, a) of the encoder's outputs (b, g, h); all queries share them."""
        keys: Tensor = self.key(outputs)
        return keys

    def forward(self, states: Tensor, outputs: Tensor, keys: Tensor) -> Tensor:
        """(b, s, h) contexts of s decoder states (b, s, h) for each of b encoded sequences.

        Args:
            states: what asks.
            outputs: (b, g, h) of the encoder.
            keys: (b, g, a) of the outputs.
        """
        if self.query is None or self.v is None:
            scores = torch.bmm(states, keys.transpose(1, 2))
        else:
            additive = _Additive.apply if torch.is_grad_enabled() else _additive
            scores = additive(self.query(states), keys, self.v)
        return torch.bmm(torch.softmax(scores, 2), outputs)


class _Additive(torch.autograd.Function):
    """v . sigmoid(q + m) for queries q (b, s, a) and keys m (b, g, a): (b, s, g).

    As tanh(x) = 2 sigmoid(2x) - 1, and a softmax does not see a constant, this is Bahdanau's score
    with all its parameters doubled; the sigmoid takes a sixth of the time of PyTorch's tanh. All
    (b, s, g, a) sums at once would be hundreds of megabytes that travel to memory and back in every
    operation, so they are made block by block, and again in the backward pass.
    """

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(queries, keys, v)
        return _additive(queries, keys, v)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, v = ctx.saved_tensors
        of_queries, of_keys, of_v = [], torch.zeros_like(keys), torch.zeros_like(v)
        blocks = (torch.split(each, _rows(queries, keys), 1) for each in (queries, gradients[0]))
        for block, gradient in zip(*blocks, strict=True):
            sigmoids = _sigmoids(block, keys)
            of_v += gradient.flatten() @ sigmoids.flatten(0, 2)
            slopes = (1 - sigmoids).mul_(sigmoids).mul_(gradient.unsqueeze(3))
            of_queries.append(slopes.sum(2))
            of_keys += slopes.sum(1)
        return torch.cat(of_queries, 1) * v, of_keys * v, of_v


def _additive(queries: Tensor, keys: Tensor, v: Tensor) -> Tensor:
    blocks = torch.split(queries, _rows(queries, keys), 1)
    return torch.cat([_sigmoids(block, keys) @ v for block in blocks], 1)


def _rows(queries: Tensor, keys: Tensor) -> int:
    """How many queries of every sequence make a block."""
    return max(1, BLOCK // (queries.shape[0] * keys.shape[1] * keys.shape[2]))


def _sigmoids(queries: Tensor, keys: Tensor) -> Tensor:
    """(b, s, g, a)."""
    return (queries.unsqueeze(2) + keys.unsqueeze(1)).sigmoid_()
