"""Steps of large models by name, such as `llama_3_8b@8x4096`: eight sequences of 4,096 tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from situate.torch_capture import TracedStep, trace_step

Build = Callable[[], Any]

LARGE: dict[str, Any] = {
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
}
"""Sizes of a layer of Llama 2 70B."""

LLAMAS: dict[str, dict[str, Any]] = {
    "llama_7b": {},
    "llama_3_8b": {
        "vocab_size": 128_256,
        "intermediate_size": 14_336,
        "num_key_value_heads": 8,
    },
    "llama_70b": {**LARGE, "num_hidden_layers": 80},
}
"""By name, sizes that differ from those of Llama 7B (Touvron et al., 2023; Grattafiori et al.,
2024)."""

LAYERS, HIDDEN, INNER, EXPERTS = 16, 2048, 1408, 64

ROWS_OF_EXPERT = 1 / 16
"""Share of all tokens that each expert takes."""


def token_loss(model: Any, tokens: Any, following: Any) -> Any:
    """The sum of all tokens' cross entropies over the number of tokens. A mean of PyTorch's would
    leave out labels, so that slices could change it."""
    from torch.nn import functional as F

    logits = model(input_ids=tokens, use_cache=False).logits.flatten(0, 1).float()
    return F.cross_entropy(logits, following.flatten(), reduction="sum") / tokens.numel()


def llama(sizes: dict[str, Any], batch: int, length: int = 2048) -> Build:
    """A Llama on sequences of random tokens."""

    def build() -> Any:
        import torch
        from transformers import AutoModelForCausalLM, LlamaConfig

        from situate.zoo.transformer import from_config, tokens

        config = LlamaConfig(**sizes)
        model = from_config(AutoModelForCausalLM, config, torch.bfloat16)
        return model, tokens(config.vocab_size, batch, length), token_loss

    return build


def experts(batch: int, length: int = 4096) -> Build:
    """Llama layers whose feed-forward layers are 64 experts; each takes the tokens that want it
    most."""

    def build() -> Any:
        import torch
        from torch import nn
        from transformers import AutoModelForCausalLM, LlamaConfig

        from situate.zoo.transformer import from_config, tokens

        capacity = int(batch * length * ROWS_OF_EXPERT)

        class Experts(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.router = nn.Linear(HIDDEN, EXPERTS, bias=False)
                self.up = nn.Parameter(torch.empty(EXPERTS, HIDDEN, INNER))
                self.down = nn.Parameter(torch.empty(EXPERTS, INNER, HIDDEN))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                rows = x.flatten(0, 1)
                weights, own = self.router(rows).softmax(-1).t().topk(capacity)
                inputs = rows.index_select(0, own.flatten()).view(EXPERTS, capacity, HIDDEN)
                outputs = nn.functional.silu(inputs.bmm(self.up)).bmm(self.down)
                flat = (outputs * weights.unsqueeze(2)).flatten(0, 1)
                return torch.zeros_like(rows).index_add(0, own.flatten(), flat).view(x.shape)

        config = LlamaConfig(
            hidden_size=HIDDEN,
            num_hidden_layers=LAYERS,
            num_attention_heads=16,
            num_key_value_heads=16,
            intermediate_size=INNER,
        )
        model: Any = from_config(AutoModelForCausalLM, config, torch.bfloat16)
        for layer in model.model.layers:
            layer.mlp = Experts().to(torch.bfloat16)
        return model, tokens(config.vocab_size, batch, length), token_loss

    return build


def step_of(name: str) -> TracedStep:
    """The training step of a name, with AdamW; one sequence unless the name says otherwise."""
    model, _, batch = name.partition("@")
    if model == "experts_64":
        build = experts(*map(int, (batch or "1x4096").split("x")))
    else:
        build = llama(LLAMAS[model], *map(int, (batch or "1x2048").split("x")))
    return trace_step(build, "adamw", model, packages=("transformers",))
