"""Models that are cut over a mesh, and a rank that runs exports of them in PyTorch.

Ranks are processes that import this file, so it knows nothing but PyTorch and transformers.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

BATCH = 4
"""Samples in each batch."""


class Block(nn.Module):
    """A transformer layer that knows its number of heads."""

    def __init__(self, is_fused: bool = False) -> None:
        super().__init__()
        self.heads, hidden = 4, 16
        self.before, self.between = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden) if is_fused else None
        if not is_fused:
            self.q, self.k, self.v = (nn.Linear(hidden, hidden) for _ in range(3))
        self.out = nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 24), nn.Linear(24, hidden)

    def forward(self, x: Tensor) -> Tensor:
        b, t, hidden = x.shape
        y = self.before(x)
        split = self.qkv(y).chunk(3, -1) if self.qkv else (self.q(y), self.k(y), self.v(y))
        sizes = b, t, self.heads, hidden // self.heads
        q, k, v = (z.view(*sizes).transpose(1, 2) for z in split)
        attention = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attention.transpose(1, 2).reshape(b, t, hidden))
        return x + self.down(F.gelu(self.up(self.between(x))))


class Decoder(nn.Module):
    """A language model whose head is its embedding, or one with learned positions."""

    def __init__(self, tied: bool, vocabulary: int = 24, is_fused: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 16)
        self.positions = None if tied else nn.Parameter(torch.randn(8, 16) / 10)
        self.layers = nn.ModuleList(Block(is_fused) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, vocabulary, bias=False)
        if tied:
            self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        x = x if self.positions is None else x + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def language_loss(model: nn.Module, tokens: Tensor, targets: Tensor) -> Tensor:
    """The mean cross entropy of the next token."""
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


def decoder(tied: bool = True, vocabulary: int = 24, is_fused: bool = False) -> Any:
    """Model, inputs and loss; the same numbers each time."""
    torch.manual_seed(0)
    tokens = torch.randint(vocabulary, (BATCH, 8)), torch.randint(vocabulary, (BATCH, 8))
    return Decoder(tied, vocabulary, is_fused).double(), tokens, language_loss


def untied() -> Any:
    """A decoder whose vocabulary two parts do not divide."""
    return decoder(False, 65)


def fused() -> Any:
    """A decoder whose queries, keys and values are one product."""
    return decoder(is_fused=True)


def perceptron() -> Any:
    """Three products."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 4)
    )
    inputs = torch.randn(BATCH, 8).double(), torch.randn(BATCH, 4).double()
    return model.double(), inputs, lambda m, x, y: F.mse_loss(m(x), y)


SIZES = {
    "vocab_size": 32,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 16,
}


def of_tokens(model: Any) -> Any:
    """A language model of transformers in double precision, its inputs and its loss."""
    tokens = torch.randint(32, (BATCH, 8))
    return model.double(), (tokens, tokens), lambda m, x, y: m(input_ids=x, labels=y).loss


def llama() -> Any:
    """Llama of two layers, with queries that share keys and values."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    return of_tokens(LlamaForCausalLM(LlamaConfig(**SIZES, num_key_value_heads=2)))


def gpt2() -> Any:
    """GPT-2 of two layers, whose queries, keys and values are one Conv1D that it splits."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    none = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    sizes = {"vocab_size": 32, "n_positions": 16, "n_embd": 16, "n_layer": 2, "n_head": 4}
    config = GPT2Config(**sizes, **none)
    return of_tokens(GPT2LMHeadModel(config))


def phi3() -> Any:
    """Phi-3 of two layers, with fused products of which it takes slices and chunks."""
    from transformers import Phi3Config, Phi3ForCausalLM

    torch.manual_seed(0)
    lengths = {"original_max_position_embeddings": 16, "pad_token_id": 0}
    return of_tokens(Phi3ForCausalLM(Phi3Config(**SIZES, **lengths)))


BUILDS = {
    "decoder": decoder,
    "untied": untied,
    "fused": fused,
    "perceptron": perceptron,
    "llama": llama,
    "gpt2": gpt2,
    "phi3": phi3,
}

TRANSFORMERS = ("llama", "gpt2", "phi3")
"""Models of transformers, which compute their loss in single precision."""


def stepped(build: str) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """Loss, gradients and updated parameters of a step of the uncut model."""
    model, inputs, loss = BUILDS[build]()
    value = loss(model, *inputs)
    value.backward()
    torch.optim.AdamW(model.parameters()).step()
    parameters = dict(model.named_parameters())
    gradients = {name: parameter.grad for name, parameter in parameters.items()}
    return value.detach(), gradients, parameters


def run_rank(rank: int, folder: str, count: int, files: Sequence[tuple[str, str, int]]) -> None:
    """Run a step by each file; rank 0 leaves the loss, the gradients and the updated parameters.

    Args:
        files: the name of each file, its model, and the slices of a team.
    """
    import torch.distributed as dist

    torch.set_num_threads(1)
    store = f"file://{folder}/store{count}"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=count)
    for file, build, slices in files:
        result = _step(Path(folder, file), build, slices)
        if rank == 0:
            torch.save(result, f"{folder}/{file}.result")
    dist.destroy_process_group()


def _step(
    file: Path, build: str, slices: int
) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """One step: the mean loss, and gradients and updated parameters by name."""
    module = _module(file)
    model, inputs, loss = BUILDS[build]()
    mesh = module.device_mesh("cpu")
    module.parallelize(model, mesh)
    optimizer = torch.optim.AdamW(model.parameters())
    parts = module.MESH["tp"]
    team, count = mesh.get_rank() // parts, slices or 1
    own = slice(team * count, (team + 1) * count)
    pieces = list(zip(*(x.chunk(mesh.size() // parts * count) for x in inputs), strict=True))
    total = torch.zeros((), dtype=torch.float64)
    for piece in pieces[own]:
        with module.step():
            value = loss(model, *piece)
            (value / count).backward()
        total += getattr(value, "full_tensor", lambda whole=value: whole)().detach()
    torch.distributed.all_reduce(total)
    optimizer.step()
    parameters = dict(model.named_parameters())
    assert all(p.grad.placements == p.placements for p in parameters.values())
    gradients = {name: p.grad.full_tensor() for name, p in parameters.items()}
    updated = {name: p.full_tensor().detach() for name, p in parameters.items()}
    return total / mesh.size() / count, gradients, updated


def _module(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return module
