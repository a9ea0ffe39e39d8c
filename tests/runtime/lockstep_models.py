"""Small models with batch norms."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def convolution(channels: int, features: int, size: int = 1) -> nn.Sequential:
    """A convolution that keeps the size of images, and its norm."""
    inner = nn.Conv2d(channels, features, size, padding=size // 2, bias=False)
    return nn.Sequential(inner, nn.BatchNorm2d(features))


class Residual(nn.Module):
    """Two convolutions beside one, as in ResNet."""

    def __init__(self) -> None:
        super().__init__()
        self.given = nn.BatchNorm2d(3)
        self.first, self.second = convolution(3, 4, 3), convolution(4, 5, 3)
        self.beside, self.head = convolution(3, 5), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.given(x)
        x = F.relu(self.second(F.relu(self.first(x))) + self.beside(x))
        out: Tensor = self.head(x.mean((2, 3)))
        return out


class Branching(nn.Module):
    """Three branches that are put together, as in Inception, dropout, and norms of other kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.small, self.large, self.pooled = (
            convolution(3, *slice_) for slice_ in ((4, 1), (3, 3), (2, 1))
        )
        self.plain = nn.BatchNorm2d(9, affine=False, track_running_stats=False)
        self.still = nn.BatchNorm2d(9).eval()
        self.each, self.drop = nn.InstanceNorm2d(9), nn.Dropout(0.3)
        self.head, self.last = nn.Linear(9, 3), nn.BatchNorm1d(3, momentum=0.3)

    def train(self, mode: bool = True) -> Branching:
        super().train(mode)
        self.still.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        around = F.avg_pool2d(x, 3, 1, 1)
        x = torch.cat([self.small(x), self.large(x), self.pooled(around)], 1).relu()
        x = self.still(self.plain(self.drop(x))) + self.each(x)
        out: Tensor = self.last(self.head(x.amax((2, 3))))
        return out


def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Cross entropy."""
    return F.cross_entropy(model(x), y)


def residual() -> Any:
    """Model, inputs and loss."""
    torch.manual_seed(0)
    return Residual(), (torch.randn(8, 3, 5, 5) * 2 + 3, torch.randint(3, (8,))), loss


def branching() -> Any:
    """Model, inputs and loss."""
    torch.manual_seed(0)
    return Branching(), (torch.randn(8, 3, 5, 5) * 2 + 3, torch.randint(3, (8,))), loss
