"""The parts of a network that its training step consists of."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

ModelParts = tuple[nn.Module, tuple[Tensor, ...], Callable[..., Tensor]]
"""Model, inputs and loss; a step is `loss(model, *inputs)`."""
