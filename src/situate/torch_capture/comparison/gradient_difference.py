"""Differences between the gradients of two steps that should train the same."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

TOLERANCES = {64: 1e-6, 32: 1e-2, 16: 0.2}
"""By the bits of a number, the difference, in parts of a gradient's largest number, that the order
of additions explains. Rounding may also take a number across a kink, as that of a ReLU."""

NEGLIGIBLE = 1e-5
"""Gradients that are smaller than this part of the largest one are rounding themselves."""


def tolerance(bits: int) -> float:
    """The difference that rounding explains where the shortest numbers have so many bits."""
    return next(least for size, least in TOLERANCES.items() if bits >= size or size == 16)


def gradients_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """By parameter, its gradient, if it has one."""
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def worst_gradient(
    ours: Mapping[str, torch.Tensor], theirs: Mapping[str, torch.Tensor]
) -> tuple[float, str]:
    """The largest difference of a parameter's gradients, in parts of their largest number, and the
    parameter; 0 and an empty name where none differs. A gradient that one step lacks is zero, a
    negligible one is compared with the largest of all, and one that is no number differs without
    bound."""
    import torch

    zero = torch.zeros(())
    sizes = {name: _largest(gradient) for name, gradient in ours.items()}
    largest = max(sizes.values(), default=0.0)
    parts = {
        name: _part(_largest(ours.get(name, zero) - theirs.get(name, zero)), size, largest)
        for name, size in {**dict.fromkeys(theirs, 0.0), **sizes}.items()
    }
    worst = max(parts, key=parts.__getitem__, default="")
    return (parts[worst], worst) if parts.get(worst) else (0.0, "")


def _largest(gradient: torch.Tensor) -> float:
    """The size of a gradient's largest number; infinite if one is no number."""
    if not gradient.numel():
        return 0.0
    # Without a copy of the absolute values, which takes ten times as long.
    low, high = (gradient.abs() if gradient.is_complex() else gradient).aminmax()
    size = max(-float(low), float(high))
    return math.inf if math.isnan(size) else size


def _part(difference: float, size: float, largest: float) -> float:
    """A difference in parts of a gradient's size, or of the largest one's if it is negligible."""
    scale = size if size > NEGLIGIBLE * largest else largest
    if not difference:
        return 0.0
    return difference / scale if scale and math.isfinite(difference) else math.inf
