"""What every network of the zoo is built as."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

Built = tuple[nn.Module, tuple[Tensor, ...], Callable[..., Tensor]]
"""Model, inputs and loss; a step is `loss(model, *inputs)`."""
