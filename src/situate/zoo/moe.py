"""Mixtral 8x7B (Jiang et al., 2024) from transformers' configuration, every expert on its own.

transformers' experts look at which tokens they got, which no graph can hold. Here every expert
takes a fixed number of tokens, its capacity (Fedus et al., JMLR 2022): those that weigh it most.
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
"""Tokens an expert takes, over the number that even routing would send it."""


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
        """Tokens `x` (n, hidden), the experts chosen for each and their weights, both (n, k)."""
        capacity = min(len(x), int(self.share * len(x)))
        empty = weights.new_zeros(len(x), len(self.experts))
        routed = empty.scatter(1, chosen, weights)
        result = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
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
