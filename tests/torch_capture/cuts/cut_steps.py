"""Steps and devices on which a known layout of parallel training is best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from situate import Cluster, Problem, Result, solve
from situate.data.cluster import Device, Link
from situate.solvers.cut_choice import CutStep, choose_cuts
from situate.torch_capture import trace_step

GPUS = 4


def devices(count: int = GPUS, bandwidth: float = 300e9, memory: int | None = None) -> Cluster:
    """GPUs that all reach one another directly."""
    gpus = tuple(
        Device(f"gpu{k}", flops={"float32": 100e12}, bandwidth=2e12, launch=1e-6, memory=memory)
        for k in range(count)
    )
    return Cluster("gpus", gpus, (Link("*", "*", bandwidth=bandwidth, latency=2e-6),))


def chosen(
    build: Any, cluster: Cluster | None = None, sliced: bool = True
) -> tuple[dict[str, int], Result]:
    """The number of parts by kind, in the order of the cuts, and a plan of the step in them.

    Args:
        sliced: False to leave out slices of the batch.
    """
    traced, machine = trace_step(build, "adam", "step"), cluster or devices()
    step = CutStep.of(traced, lambda graph: Problem(graph, machine))
    choice = choose_cuts(step if sliced else replace(step, sliced=lambda _: None))
    plan = solve(choice.problem, evaluations=200)
    cuts = choice.problem.graph.cuts
    return {cut.name: len(cut.shares) for cut in cuts.cuts} if cuts else {}, plan


def homes(plan: Result, name: str) -> list[tuple[int | None, int]]:
    """Part and device of each part of a parameter, by part."""
    graph, placement = plan.problem.graph, plan.schedule.placement.tolist()
    return sorted(
        (op.part, placement[i])
        for i, op in enumerate(graph.ops)
        if op.kind == "parameter" and op.name.rpartition("/")[2] == name
    )


class Perceptron(nn.Module):
    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(hidden)
        self.up, self.down = nn.Linear(hidden, inner), nn.Linear(inner, hidden)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Attention(nn.Module):
    def __init__(self, hidden: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm = nn.LayerNorm(hidden)
        self.q, self.k, self.v = (nn.Linear(hidden, hidden) for _ in range(3))
        self.out = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor) -> Tensor:
        b, t, hidden = x.shape
        y = self.norm(x)
        own = (f(y).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        attention = F.scaled_dot_product_attention(*own, is_causal=self.causal)
        return x + self.out(attention.transpose(1, 2).reshape(b, t, hidden))


class Experts(nn.Module):
    """Each expert takes the tokens that want it most."""

    def __init__(self, hidden: int, inner: int, experts: int, capacity: int) -> None:
        super().__init__()
        self.shape = experts, capacity
        self.router = nn.Linear(hidden, experts)
        self.up = nn.Parameter(torch.empty(experts, hidden, inner))
        self.down = nn.Parameter(torch.empty(experts, inner, hidden))

    def forward(self, x: Tensor) -> Tensor:
        rows, (experts, capacity) = x.flatten(0, 1), self.shape
        weights, own = self.router(rows).softmax(-1).t().topk(capacity)
        inputs = rows.index_select(0, own.flatten()).view(experts, capacity, -1)
        outputs = inputs.bmm(self.up).relu().bmm(self.down) * weights.unsqueeze(2)
        flat = outputs.flatten(0, 1)
        return torch.zeros_like(rows).index_add(0, own.flatten(), flat).view(x.shape)


class Words(nn.Module):
    def __init__(self, vocabulary: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.norm(self.embedding(tokens)))


def _squares(model: nn.Module, x: Tensor) -> Tensor:
    return model(x).square().mean()


def transformer() -> Any:
    """One long sequence through two layers: tensor parallel, with sequence parallel norms."""
    layers = [m for _ in range(2) for m in (Attention(2048, 16, True), Perceptron(2048, 8192))]
    return nn.Sequential(*layers), (torch.empty(1, 2048, 2048),), _squares


def language_head() -> Any:
    """Few tokens and many words: vocabulary parallel."""

    def loss(model: nn.Module, tokens: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())

    tokens = torch.zeros(1, 512, dtype=torch.long), torch.zeros(1, 512, dtype=torch.long)
    return Words(64_000, 1024), tokens, loss


def mixture() -> Any:
    """Many experts: expert parallel."""
    return Experts(1024, 2048, 16, 512), (torch.empty(1, 2048, 1024),), _squares


def large_batch() -> Any:
    """Many samples through small weights: data parallel, with sharded parameters."""
    layers = [Perceptron(1024, 4096) for _ in range(2)]
    return nn.Sequential(*layers), (torch.empty(65_536, 1024),), _squares


def long_context() -> Any:
    """Long attention with a single head: context parallel."""
    return Attention(128, 1, False), (torch.empty(1, 16_384, 128),), _squares


def two_nodes(bandwidth: float = 2e9) -> Cluster:
    """Two nodes of two GPUs on a slow network."""
    links = (
        Link("*", "*", bandwidth, 2e-6),
        *(Link(f"node{k}*", f"node{k}*", 300e9, 2e-6) for k in range(2)),
    )
    gpus = tuple(
        msgspec.structs.replace(gpu, name=f"node{k // 2}-gpu{k % 2}")
        for k, gpu in enumerate(devices().devices)
    )
    return Cluster("two nodes", gpus, links)


def wide_layers(batch: int = 4) -> Callable[[], Any]:
    """A build of four wide layers for a few long samples."""

    def build() -> Any:
        layers = [Perceptron(1024, 16384) for _ in range(4)]
        return nn.Sequential(*layers), (torch.empty(batch, 256, 1024),), _squares

    return build
