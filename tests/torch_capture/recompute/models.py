"""Small models of blocks in a row."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from situate.data.graph import Graph
from situate.data.slices import Slices
from situate.torch_capture import TracedStep, trace_step


class Residual(nn.Module):
    """A block that draws, normalises and adds its input."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 12), nn.Linear(12, 6)
        self.norm, self.drop = nn.BatchNorm1d(12), nn.Dropout(0.3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.last(self.drop(F.gelu(self.norm(self.first(x)))))
        return out


class Blocks(nn.Module):
    """Three blocks between two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(6, 6), nn.Linear(6, 3)
        self.layers = nn.ModuleList(Residual() for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for layer in self.layers:
            x = layer(x)
        out: Tensor = self.head(x)
        return out


def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Cross entropy."""
    return F.cross_entropy(model(x), y)


def blocks() -> Any:
    """Model, inputs and loss."""
    torch.manual_seed(0)
    return Blocks(), (torch.randn(8, 6), torch.randint(3, (8,))), loss


@cache
def step(cut: bool = False) -> TracedStep:
    """The step, of its whole batch or of two slices."""
    return trace_step(blocks, "sgd", "blocks", Slices((1, 1)) if cut else None)


def graph(*modules: str, cut: bool = False) -> Graph:
    """The graph of the step in which modules run again."""
    return step(cut).graph(modules)
