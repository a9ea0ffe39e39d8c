"""Steps whose batches cannot be cut, for commands that are asked to."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


def scaled() -> Any:
    """An input without dimensions."""
    inputs = torch.randn(8, 6), torch.randn(8, 3), torch.tensor(2.0)
    return nn.Linear(6, 3), inputs, lambda m, x, y, s: F.mse_loss(m(x) * s, y)


def whole() -> Any:
    """Inputs without a batch."""
    return nn.Linear(6, 3), (torch.tensor(2.0),), lambda m, s: (m(torch.ones(6)) * s).sum()


def numbered() -> Any:
    """The size of the batch as a number, which no slice has."""
    inputs = torch.randn(8, 6), torch.randn(8, 3)
    return nn.Linear(6, 3), inputs, lambda m, x, y: F.mse_loss(m(x.view(8, 6)), y)


def dealt() -> Any:
    """The size of the batch as a number, by which a slice is dealt out anew."""
    inputs = torch.randn(8, 6), torch.randn(8, 4)
    return nn.Linear(6, 4), inputs, lambda m, x, y: F.mse_loss(m(x).view(4, -1), y.view(4, -1))


def rooted() -> Any:
    """A loss that is neither a mean nor a sum over samples."""
    inputs = torch.randn(8, 6), torch.randn(8, 3)
    return nn.Linear(6, 3), inputs, lambda m, x, y: F.mse_loss(m(x), y).sqrt()
