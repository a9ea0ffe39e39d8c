"""A stack of residual blocks, and steps of it in other modes of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from situate.runtime.equality import Equality, compare
from tests.runtime.placing import placed_step, sgd

Forward = Callable[[Any, Tensor], Tensor]

cast = partial(torch.autocast, "cpu", dtype=torch.bfloat16)


class Block(nn.Module):
    """A normalised layer beside a path around it."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up = nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return x + F.gelu(self.up(self.norm(x)))


class Stack(nn.Module):
    """Blocks and a last layer, called as a function says, or one after the other."""

    def __init__(self, forward: Forward | None = None) -> None:
        super().__init__()
        self.layers, self.head = nn.ModuleList(Block() for _ in range(3)), nn.Linear(8, 4)
        self._forward = forward

    def forward(self, x: Tensor) -> Tensor:
        return self.plain(x) if self._forward is None else self._forward(self, x)

    def plain(self, x: Tensor) -> Tensor:
        """The result without a mode."""
        for layer in self.layers:
            x = layer(x)
        out: Tensor = self.head(x)
        return out


def loss(model: nn.Module, x: Tensor) -> Tensor:
    """The mean square, in single precision."""
    out: Tensor = model(x).float().square().mean()
    return out


def step(forward: Forward | None = None) -> Any:
    """Model, inputs and loss."""
    torch.manual_seed(0)
    return Stack(forward), (torch.randn(6, 8),), loss


def compare_steps(subject: Any) -> Equality:
    """The placed step beside eager PyTorch's."""
    model, inputs, of_step = subject
    return compare(
        model, inputs, of_step, sgd, partial(placed_step, given=(inputs, of_step)), threads=1
    )
