"""Small steps whose batch of eight samples is cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import situate
from situate.data.graph import Graph
from situate.data.slices import Slices

Loss = Callable[..., Any]


def captured(
    function: Loss,
    *more: Tensor,
    model: nn.Module | None = None,
    optimizer: str = "sgd",
    shares: tuple[int, ...] = (1, 1),
    **slices: Any,
) -> Graph:
    """The step of a layer from 6 to 3 features, or of another model, on batches of 8."""

    def build() -> Any:
        return model or nn.Linear(6, 3), (torch.randn(8, 6), torch.randn(8, 3), *more), function

    return situate.capture(build, optimizer=optimizer, slices=Slices(shares, **slices))
