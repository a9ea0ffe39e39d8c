"""A model that calls a function, and its captured step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from situate.data.graph import Graph
from situate.torch_capture import capture

X = (torch.ones(4, 3),)


def mean(model: nn.Module, x: Tensor) -> Tensor:
    """A loss."""
    out: Tensor = model(x)
    return out.mean()


class Calls(nn.Module):
    """A layer, a norm, and a function that uses them."""

    def __init__(self, function: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        self.layer, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)
        self._function = function

    def forward(self, x: Tensor) -> Tensor:
        return self._function(self, x)


def of(function: Callable[[Any, Tensor], Tensor], training: bool = True) -> Graph:
    """The step of a model that calls `function`."""
    return capture(lambda: (Calls(function), X, mean), training=training, name="m")
