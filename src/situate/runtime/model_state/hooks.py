"""Hooks of the caller's own, which PyTorch calls in the backward pass and the update, and a placed
step does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING

from situate.errors import SituateError

if TYPE_CHECKING:
    import torch

Kinds = Mapping[str, str]
"""Names of hooks, by the attribute that holds them."""

_PARAMETER = {
    "_backward_hooks": "hook on its gradient",
    "_post_accumulate_grad_hooks": "hook after its gradient",
}
_MODULE = {"_backward_pre_hooks": "backward pre-hook", "_backward_hooks": "backward hook"}
_OPTIMIZER = {
    "_optimizer_step_pre_hooks": "step pre-hook",
    "_optimizer_step_post_hooks": "step post-hook",
}
_ALL_OPTIMIZERS = {
    "_global_optimizer_pre_hooks": "step pre-hook for all optimizers",
    "_global_optimizer_post_hooks": "step post-hook for all optimizers",
}
_ALL_MODULES = {
    "_global_backward_pre_hooks": "backward pre-hook for all modules",
    "_global_backward_hooks": "backward hook for all modules",
}


class Hooks:
    """The hooks that there may be, and that a placed step would leave out.

    Args:
        trained: by name, the parameters that the step updates.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        trained: Mapping[str, torch.Tensor],
    ) -> None:
        from torch.nn.modules import module as all_modules
        from torch.optim import optimizer as all_optimizers

        self._trained = {f"parameter {path!r}": tensor for path, tensor in trained.items()}
        self._modules = {
            f"module {path!r}" if path else "the model": module
            for path, module in model.named_modules()
        }
        self._others: list[tuple[str, object, Kinds]] = [
            ("the optimizer", optimizer, _OPTIMIZER),
            ("torch.optim", all_optimizers, _ALL_OPTIMIZERS),
            ("torch.nn", all_modules, _ALL_MODULES),
        ]

    def check(self) -> None:
        """Refuse what PyTorch would call.

        Raises:
            SituateError: there is a hook, which it names.
        """
        for name, kind in self._found():
            raise SituateError(f"{name} has a {kind}, which a placed step does not call: remove it")

    def _found(self) -> Iterator[tuple[str, str]]:
        yield from _of_any(self._trained, _PARAMETER)
        yield from _of_any(self._modules, _MODULE)
        for name, owner, kinds in self._others:
            for attribute, kind in kinds.items():
                if not all(map(_of_pytorch, getattr(owner, attribute).values())):
                    yield name, kind


def _of_any(owners: Mapping[str, object], kinds: Kinds) -> Iterable[tuple[str, str]]:
    for attribute, kind in kinds.items():
        if any(map(attrgetter(attribute), owners.values())):
            yield next(name for name, owner in owners.items() if getattr(owner, attribute)), kind


def _of_pytorch(hook: object) -> bool:
    """True for PyTorch's own hooks, such as its profiler's, which change nothing."""
    return str(getattr(hook, "__module__", "")).startswith("torch.")
