"""Content-based attention of a decoder's steps to an encoder's outputs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from situate import _core
from situate.policies.arithmetic import call_core, product
from situate.policies.shapes import Score


class Attention(nn.Module):
    """Attention weights over the g outputs of an encoder for every query, and their weighted sum.

    Args:
        hidden: width h of queries and outputs.
        score: `additive`, v . tanh(W s + U h) (Bahdanau et al., ICLR 2015, A.1.2), or `general`, s
            . U h (Luong et al., EMNLP 2015, Eq. 8), which costs far less.
        width: width a of the space in which an additive score compares; a general score uses h.

    Attributes:
        scale: factor on all parameters of an additive score; with 2 the score is Bahdanau's.
    """

    def __init__(self, hidden: int, score: Score, width: int) -> None:
        super().__init__()
        self.key = nn.Linear(hidden, width if score == "additive" else hidden, bias=False)
        self.query = nn.Linear(hidden, width, bias=False) if score == "additive" else None
        self.v = nn.Parameter(torch.empty(width)) if score == "additive" else None
        self.scale = 1.0

    def keys(self, outputs: Tensor) -> Tensor:
        """(b, g, a) keys of the encoder's outputs (b, g, h); all queries share them."""
        keys: Tensor = self.key(outputs)
        return keys if self.scale == 1 else self.scale * keys

    def additive_weights(self) -> tuple[Tensor, Tensor] | None:
        """W (a, h) and v (a,) of an additive score, scaled; None for another score."""
        if self.query is None or self.v is None:
            return None
        weights = self.query.weight, self.v
        return weights if self.scale == 1 else (self.scale * weights[0], self.scale * weights[1])

    def forward(self, states: Tensor, outputs: Tensor, keys: Tensor) -> Tensor:
        """(b, s, h) contexts of s decoder states (b, s, h) for each of b encoded sequences.

        Args:
            states: the queries.
            outputs: (b, g, h) of the encoder.
            keys: (b, g, a) of the outputs.
        """
        additive = self.additive_weights()
        if additive is None:
            # (b, s, h) x (b, h, g) to (b, s, g): one score for every query and output.
            scores = torch.bmm(states, keys.transpose(1, 2))
        else:
            query, v = additive
            scores = _Additive.apply(  # type: ignore[no-untyped-call]
                functional.linear(states, query), keys, v
            )
        weights = torch.softmax(scores, 2)
        # (b, s, g) x (b, g, h) to (b, s, h). A single sequence is a plain product of matrices,
        # which `product` splits over threads and `bmm` would not.
        if len(weights) > 1:
            return torch.bmm(weights, outputs)
        return product(weights[0], outputs[0]).unsqueeze(0)


class _Additive(torch.autograd.Function):
    """v . sigmoid(q + m) for queries q (b, s, a) and keys m (b, g, a): (b, s, g).

    This equals Bahdanau's score with all parameters doubled: tanh(x) = 2 sigmoid(2x) - 1, and a
    softmax ignores a constant. The (b, s, g, a) sums would take hundreds of megabytes, so the core
    computes each where it is needed, and again in the backward pass.
    """

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(queries, keys, v)
        return call_core(_core.nn.additive_scores, queries, keys, v)[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        return tuple(call_core(_core.nn.additive_gradients, *ctx.saved_tensors, *gradients))
