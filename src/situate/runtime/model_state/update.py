"""The update of one parameter by PyTorch's own functions, in pieces.

A piece is copied and then changed while it is still in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from situate.data.update_rule import WHOLE
from situate.runtime.model_state.adam import update_adam, update_adamw
from situate.runtime.model_state.optimizers import Hyperparameters, owner_types
from situate.runtime.model_state.state import Entry, rows
from situate.torch_capture.updates.optimizer_state import state_tensors

if TYPE_CHECKING:
    import torch

PIECE_ELEMENTS = 2**18
"""Elements of a piece: smaller pieces cost Python's time, larger ones exceed a CPU's caches."""

Tensors = Sequence["torch.Tensor"]
Apply = Callable[[Tensors, "torch.Tensor", "torch.Tensor", Hyperparameters], None]
"""An in-place update of a parameter and its moments, from its gradient and the count of earlier
steps."""


class Update:
    """The update of one parameter.

    Args:
        kind: one of `situate.data.update_rule.OPTIMIZERS`.
        entry: the parameter and its optimiser state.
        hyperparameters: of its group.
    """

    def __init__(self, kind: str, entry: Entry, hyperparameters: Hyperparameters) -> None:
        import torch

        self._entry, self._apply = entry, APPLY[kind]
        self._hyperparameters = owner_types(hyperparameters)
        self._whole = kind in WHOLE
        self._size = _size(entry.value, self._whole)
        self._parts = self._pieces(entry.parts)
        self._copies = self._pieces(entry.copies) or [()] * len(self._parts)
        self._count = torch.zeros((), device="cpu")

    def set_hyperparameters(self, hyperparameters: Hyperparameters) -> None:
        """Use other hyperparameters from now on."""
        self._hyperparameters = owner_types(hyperparameters)

    def __call__(self, gradient: torch.Tensor, step: int) -> None:
        """Update in step number `step`, which `Entry.undo` can undo at any point."""
        entry = self._entry
        entry.begin(step)
        gradients = self._pieces([self._like(gradient)])
        pieces = zip(self._parts, self._copies, gradients, strict=True)
        for k, (parts, copies, (part,)) in enumerate(pieces, start=1):
            for copy, old in zip(copies, parts, strict=False):
                copy.copy_(old)
            # Marked before the piece changes, so that an update which fails in it can be undone.
            entry.copied(k * self._size)
            # PyTorch counts each call as a step: every piece begins with the count before this one.
            self._count.copy_(entry.count)
            self._apply(parts, part, self._count, self._hyperparameters)
        entry.count.copy_(self._count)

    def _pieces(self, tensors: Tensors) -> list[tuple[torch.Tensor, ...]]:
        """The pieces of tensors of the parameter's shape: by piece, one of each tensor."""
        import torch

        if self._whole:
            return [tuple(tensors)] if tensors else []
        like = self._entry.value
        return list(zip(*(torch.split(rows(t, like), self._size) for t in tensors), strict=True))

    def _like(self, gradient: torch.Tensor) -> torch.Tensor:
        """The gradient, with the parameter's layout."""
        import torch

        parameter = self._entry.parts[0]
        if gradient.stride() == parameter.stride() or rows(parameter) is parameter:
            return gradient
        return torch.empty_like(parameter).copy_(gradient)


def rehearse(kind: str, hyperparameters: Hyperparameters, dtype: torch.dtype) -> None:
    """Raise the error of an update with these hyperparameters, if any, and change nothing."""
    import torch

    # One element shows every error that depends on options and types. Muon's groups hold matrices.
    shape = (1, 1) if "ns_steps" in hyperparameters else (1,)
    types = [getattr(torch, p.dtype) if p.dtype else dtype for p in state_tensors(kind, shape)]
    gradient, *parts = (torch.zeros(shape, dtype=t, device="cpu") for t in (dtype, dtype, *types))
    with torch.no_grad():
        APPLY[kind](parts, gradient, torch.zeros((), device="cpu"), owner_types(hyperparameters))


def _size(parameter: torch.Tensor, whole: bool) -> int:
    """Rows of a piece, see `rows`. On a GPU a call costs more than the caches save, so one piece
    has all, as it has if the update is not element by element."""
    count = max(1, len(rows(parameter)))
    if whole or parameter.device.type != "cpu":
        return count
    return max(1, PIECE_ELEMENTS * count // max(1, parameter.numel()))


def _sgd(
    parts: Tensors, gradient: torch.Tensor, count: torch.Tensor, hyperparameters: Hyperparameters
) -> None:
    from torch.optim.sgd import sgd

    # Without momentum PyTorch wants a list of None, one for each parameter.
    momenta: list[torch.Tensor | None] = [*parts[1:]] or [None]
    options = {
        name: hyperparameters[name] for name in ("lr", "momentum", "weight_decay", "maximize")
    }
    sgd(
        [parts[0]],
        [gradient],
        momenta,
        foreach=False,
        dampening=0.0,
        nesterov=hyperparameters["nesterov"],
        **options,
    )
    count += 1


def _rounded_adamw(
    parts: Tensors, gradient: torch.Tensor, count: torch.Tensor, hyperparameters: Hyperparameters
) -> None:
    from situate.runtime.model_state.rounded_moments import update_rounded

    def update(wide: Tensors, wide_gradient: torch.Tensor) -> None:
        update_adamw(wide, wide_gradient, count, hyperparameters)

    update_rounded(parts, gradient, update)


def _muon(
    parts: Tensors, gradient: torch.Tensor, count: torch.Tensor, hyperparameters: Hyperparameters
) -> None:
    from situate.runtime.model_state.muon import update_muon

    update_muon(parts, gradient, count, hyperparameters)


def _adafactor(
    parts: Tensors, gradient: torch.Tensor, count: torch.Tensor, hyperparameters: Hyperparameters
) -> None:
    from torch.optim._adafactor import adafactor

    parameter, *state = parts
    # A matrix has two factors of its variance, another parameter the variance itself.
    row, column, variance = (*state, None) if len(state) == 2 else (None, None, *state)
    names = ("d", "lr", "beta2_decay", "weight_decay", "maximize")
    options = {name: hyperparameters[name] for name in names}
    eps1, eps2 = hyperparameters["eps"]
    adafactor(
        [parameter],
        [gradient],
        [row],
        [column],
        [variance],
        [count],
        foreach=False,
        eps1=eps1,
        eps2=eps2,
        **options,
    )


APPLY: dict[str, Apply] = {
    "sgd": _sgd,
    "momentum": _sgd,
    "adam": update_adam,
    "adamw": update_adamw,
    "adamw-bf16": _rounded_adamw,
    "adamw8bit": _rounded_adamw,
    "adafactor": _adafactor,
    "muon": _muon,
}
"""By kind of optimiser, the update of a piece of a parameter."""
