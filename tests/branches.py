"""A network of two linear branches, for tests that run steps."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Branches(nn.Module):
    """Two linear layers side by side, dropout, and a count of the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(8, 4), nn.Linear(8, 4)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.calls += 1
        return F.dropout(torch.relu(self.left(x)) + torch.tanh(self.right(x)), 0.25, self.training)


def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Mean squared error."""
    return F.mse_loss(model(x), y)


def build() -> Any:
    """Model, inputs and loss."""
    return Branches(), (torch.randn(16, 8), torch.randn(16, 4)), loss


def named() -> Any:
    """A model and a step that name the devices they were written for."""

    def cast(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        with torch.autocast("cuda", torch.bfloat16):
            out = model(x.to("cuda:1"))
        return F.mse_loss(out.float() * torch.ones(4, device="cuda:1"), y.cuda())

    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)).to("cuda")
    return model, (torch.randn(16, 8, device="cuda"), torch.randn(16, 4).pin_memory()), cast


def endless() -> Any:
    """Inputs of which the loss is infinite."""
    return Branches(), (torch.full((16, 8), 1e30), torch.randn(16, 4)), loss


class Upsampling(nn.Module):
    """Two convolutions, and between them an image that is enlarged."""

    def __init__(self) -> None:
        super().__init__()
        self.coarse, self.fine = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 2, 3)

    def forward(self, x: Tensor) -> Tensor:
        large = F.interpolate(self.coarse(x), scale_factor=2, mode="bilinear")
        out: Tensor = self.fine(large)
        return out


def upsampling() -> Any:
    """A kernel that PyTorch would trace as many ops."""
    return Upsampling(), (torch.randn(2, 3, 9, 9), torch.randn(2, 2, 12, 12)), loss


class Recurrent(nn.Module):
    """An LSTM that reads data, and a linear layer behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.cells, self.head = nn.LSTM(8, 16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.cells(x)[0])
        return out


def recurrent() -> Any:
    """Layers that are captured op by op where PyTorch has a kernel."""
    return Recurrent(), (torch.randn(5, 16, 8), torch.randn(5, 16, 4)), loss
