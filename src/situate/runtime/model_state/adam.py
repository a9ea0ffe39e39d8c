"""Updates of one parameter by PyTorch's Adam and AdamW."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

Tensors = Sequence["torch.Tensor"]


def update_adam(
    parts: Tensors, gradient: torch.Tensor, count: torch.Tensor, group: Mapping[str, Any]
) -> None:
    """Update a parameter and its two moments in place, and count the step.

    Args:
        parts: the parameter, the average of its gradients, and that of their squares.
        gradient: of the parameter.
        count: of earlier steps.
        group: the settings of the optimiser's group.
    """
    # The functional form: an `Adam` object would own its state, which lies in common memory here.
    from torch.optim.adam import adam

    parameter, average, square = ([part] for part in parts)
    adam(parameter, [gradient], average, square, [], [count], **_options(group))


def update_adamw(
    parts: Tensors, gradient: torch.Tensor, count: torch.Tensor, group: Mapping[str, Any]
) -> None:
    """The same update by AdamW; arguments are those of `update_adam`."""
    from torch.optim.adamw import adamw

    parameter, average, square = ([part] for part in parts)
    adamw(parameter, [gradient], average, square, [], [count], **_options(group))


def _options(group: Mapping[str, Any]) -> dict[str, Any]:
    beta1, beta2 = group["betas"]
    options = {name: group[name] for name in ("lr", "weight_decay", "eps", "maximize")}
    return {"foreach": False, "amsgrad": False, "beta1": beta1, "beta2": beta2, **options}
