"""Differences between the gradients of two steps that should train the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

ROUNDING = 1e-3
"""The difference, in parts of a gradient's largest number, that order of addition explains."""

LOW_PRECISION = 0.1
"""The same where some numbers have 16 bits or fewer."""

NEGLIGIBLE = 1e-5
"""Gradients that are smaller than this part of the largest one are rounding themselves."""


def gradients_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """By parameter, its gradient, if it has one."""
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def worst_gradient(
    ours: Mapping[str, torch.Tensor], theirs: Mapping[str, torch.Tensor]
) -> tuple[float, str]:
    """The largest difference of a parameter's gradients, in parts of their largest number, and the
    parameter; 0 and an empty name where none differs. A gradient that one step lacks is zero."""
    sizes = {name: float(g.abs().max()) if g.numel() else 0.0 for name, g in ours.items()}
    largest = max(sizes.values(), default=0.0)
    found = {
        name: float((ours[name] - theirs.get(name, 0)).abs().max()) / size
        for name, size in sizes.items()
        if size > NEGLIGIBLE * largest
    }
    worst = max(found, key=found.__getitem__, default="")
    return (found[worst], worst) if found.get(worst) else (0.0, "")
