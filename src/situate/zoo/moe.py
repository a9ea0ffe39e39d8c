"""Mixtral 8x7B (Jiang et al., 2024) from transformers' configuration, every expert on its own.

In transformers the number of an expert's tokens depends on their values, which no graph can hold.
Here every expert takes a fixed number of tokens, its capacity (Fedus et al., JMLR 2022): the tokens
with the largest weight for it.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional as F

from situate.zoo.parts import ModelParts
from situate.zoo.transformer import from_config, language_loss, tokens

CAPACITY = 1.25
"""Capacity of an expert over its number of tokens in even routing."""


class Expert(nn.Module):
    """A gated feed-forward layer (Shazeer, 2020)."""

    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        self.gate = nn.Linear(hidden, inner, bias=False)
        self.up = nn.Linear(hidden, inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.down(F.silu(self.gate(x)) * self.up(x))
        return result


class Experts(nn.Module):
    """A replacement for transformers' experts: same arguments, same result up to capacity."""

    def __init__(self, config: transformers.MixtralConfig) -> None:
        super().__init__()
        self.share = CAPACITY * config.num_experts_per_tok / config.num_local_experts
        self.experts = nn.ModuleList(
            Expert(config.hidden_size, config.intermediate_size)
            for _ in range(config.num_local_experts)
        )

    def forward(self, x: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
        """The sum of the experts' outputs, (n, hidden).

        Args:
            x: (n, hidden) tokens.
            chosen: (n, k) the experts of each token.
            weights: (n, k) of these experts.
        """
        capacity = min(len(x), int(self.share * len(x)))
        empty = weights.new_zeros(len(x), len(self.experts))
        # (n, experts): weights by token and expert, 0 for experts that a token did not choose.
        routed = empty.scatter(1, chosen, weights)
        result = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            # A slot beyond the tokens of this expert gets a token of weight 0, which adds nothing.
            weight, rows = routed[:, i].topk(capacity)
            output = expert(x.index_select(0, rows)) * weight.unsqueeze(1)
            result = result.index_add(0, rows, output.to(x.dtype))
        return result


def build(batch: int = 1, length: int = 2048) -> ModelParts:
    """Model, inputs and loss; bfloat16, 46.7 billion parameters."""
    config = transformers.MixtralConfig()
    model: Any = from_config(transformers.AutoModelForCausalLM, config, torch.bfloat16)
    for layer in model.model.layers:
        layer.mlp.experts = Experts(config).to(torch.bfloat16)
    return model, tokens(config.vocab_size, batch, length), language_loss
