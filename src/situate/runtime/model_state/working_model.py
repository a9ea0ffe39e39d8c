"""A model in bfloat16 beside its float32 masters, as a training loop holds them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from situate.data.update_rule import Recipe
from situate.torch_capture.updates.recipes import cast_model

if TYPE_CHECKING:
    import torch


class WorkingModel:
    """The model whose passes a step runs.

    Under a recipe with masters it is a copy in bfloat16, which takes its weights from the masters
    before a step and gives them its gradients after it. Otherwise it is the model itself.

    Args:
        masters: the model that the optimiser updates.
        recipe: of mixed precision; None for the types of the model.

    Attributes:
        model: runs forward and backward passes.
        masters: the model that the optimiser updates.
        sums_float32: gradients of slices add up in float32.
    """

    def __init__(self, masters: torch.nn.Module, recipe: Recipe | None) -> None:
        self.masters, self._is_apart = masters, recipe is not None and recipe.has_masters
        self.model = copy.deepcopy(masters) if self._is_apart else masters
        self.sums_float32 = recipe is not None and recipe.sums_float32
        if self._is_apart:
            cast_model(self.model)

    def begin(self) -> None:
        """Take weights and buffers from the masters."""
        import torch

        if self._is_apart:
            with torch.no_grad():
                for ours, theirs in self._pairs():
                    ours.copy_(theirs)

    def give_gradients(self) -> None:
        """Give the masters the gradients of a backward pass."""
        if self._is_apart:
            for ours, theirs in zip(
                self.model.parameters(), self.masters.parameters(), strict=True
            ):
                theirs.grad = None if ours.grad is None else ours.grad.to(theirs.dtype)
                ours.grad = None

    def give_buffers(self) -> None:
        """Give the masters the buffers after a step."""
        if self._is_apart:
            for ours, theirs in zip(self.model.buffers(), self.masters.buffers(), strict=True):
                theirs.copy_(ours)

    def _pairs(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        models = (self.model, self.masters)
        ours, theirs = ([*model.parameters(), *model.buffers()] for model in models)
        return list(zip(ours, theirs, strict=True))
