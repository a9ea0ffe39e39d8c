"""The built form of every network of the zoo."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

Built = tuple[nn.Module, tuple[Tensor, ...], Callable[..., Tensor]]
"""Model, inputs and loss; a step is `loss(model, *inputs)`."""
