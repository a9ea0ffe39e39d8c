"""Checks that the caller's optimiser and hooks require nothing that a placed step cannot do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, is_
from typing import TYPE_CHECKING

from situate.errors import SituateError
from situate.runtime.model_state.optimizers import check_options, kind_of

if TYPE_CHECKING:
    import torch


_RECOMPILE = "since the step was made: compile the plan again"


HookKinds = Mapping[str, str]
"""Names of hooks, by the attribute that holds them."""

_PARAMETER_HOOKS = {
    "_backward_hooks": "hook on its gradient",
    "_post_accumulate_grad_hooks": "hook after its gradient",
}

_MODULE_HOOKS = {"_backward_pre_hooks": "backward pre-hook", "_backward_hooks": "backward hook"}

_OPTIMIZER_HOOKS = {
    "_optimizer_step_pre_hooks": "step pre-hook",
    "_optimizer_step_post_hooks": "step post-hook",
}

_GLOBAL_OPTIMIZER_HOOKS = {
    "_global_optimizer_pre_hooks": "step pre-hook for all optimizers",
    "_global_optimizer_post_hooks": "step post-hook for all optimizers",
}

_GLOBAL_MODULE_HOOKS = {
    "_global_backward_pre_hooks": "backward pre-hook for all modules",
    "_global_backward_hooks": "backward hook for all modules",
}


class ParameterGroups:
    """The optimiser's groups of parameters, which must stay as they were when the step was made.

    Args:
        state: by name, the tensors of the model.
        updated: numbers of the parameters that the step updates.

    Attributes:
        of: by number of an updated parameter, its group.
        trained: the updated parameters, by name.

    Raises:
        SituateError: no placed step can run the optimiser, or it leaves out an updated parameter.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        state: Mapping[str, torch.Tensor],
        updated: Iterable[int],
    ) -> None:
        self._optimizer, self._kind = optimizer, kind_of(optimizer)
        self._parameters = [[*group["params"]] for group in optimizer.param_groups]
        group_of = {
            id(p): group for group, parameters in enumerate(self._parameters) for p in parameters
        }
        self._tensors = {path: tensor for path, tensor in state.items() if id(tensor) in group_of}
        self._trainable = self._gradient_flags()
        paths, numbers = list(state), list(updated)
        for path in (paths[number] for number in numbers):
            if path not in self._tensors:
                raise SituateError(
                    f"the optimizer leaves out parameter {path!r}, which the step updates: freeze "
                    "it before planning, or give it to the optimizer"
                )
        self.trained = {paths[number]: self._tensors[paths[number]] for number in numbers}
        self.of = {number: group_of[id(self._tensors[paths[number]])] for number in numbers}

    def check(self) -> None:
        """Refuse changes that require another step.

        Raises:
            SituateError: a parameter was added, removed, moved to another group, frozen or
                unfrozen, or an option was set that a placed step does not support.
        """
        now = [group["params"] for group in self._optimizer.param_groups]
        if len(now) != len(self._parameters) or not all(map(_same, now, self._parameters)):
            raise SituateError(f"the optimizer's groups of parameters were changed {_RECOMPILE}")
        self._check_frozen()
        check_options(self._optimizer)
        groups = self._optimizer.param_groups
        if self._kind == "sgd" and any(group.get("momentum") for group in groups):
            raise SituateError(f"the optimizer's momentum was switched on {_RECOMPILE}")

    def _check_frozen(self) -> None:
        if (now := self._gradient_flags()) == self._trainable:
            return
        changed = zip(self._tensors, now, self._trainable, strict=True)
        path, is_trainable = next((path, new) for path, new, old in changed if new != old)
        how = "unfrozen" if is_trainable else "frozen"
        raise SituateError(f"parameter {path!r} was {how} {_RECOMPILE}")

    def _gradient_flags(self) -> list[bool]:
        return [tensor.requires_grad for tensor in self._tensors.values()]


def _same(some: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    # By identity: `==` compares the numbers of tensors, element by element.
    return len(some) == len(others) and all(map(is_, some, others))


class HookCheck:
    """Refuses the caller's hooks that PyTorch would call in the backward pass or the update.

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
        self._others: list[tuple[str, object, HookKinds]] = [
            ("the optimizer", optimizer, _OPTIMIZER_HOOKS),
            ("torch.optim", all_optimizers, _GLOBAL_OPTIMIZER_HOOKS),
            ("torch.nn", all_modules, _GLOBAL_MODULE_HOOKS),
        ]

    def check(self) -> None:
        """Refuse hooks, as a placed step does not call them.

        Raises:
            SituateError: there is a hook, which it names.
        """
        for name, kind in self._unsupported():
            raise SituateError(f"{name} has a {kind}, which a placed step does not call: remove it")

    def _unsupported(self) -> Iterator[tuple[str, str]]:
        yield from _hooks_of(self._trained, _PARAMETER_HOOKS)
        yield from _hooks_of(self._modules, _MODULE_HOOKS)
        for name, owner, kinds in self._others:
            for attribute, kind in kinds.items():
                if not all(map(_is_pytorch_hook, getattr(owner, attribute).values())):
                    yield name, kind


def _hooks_of(owners: Mapping[str, object], kinds: HookKinds) -> Iterable[tuple[str, str]]:
    for attribute, kind in kinds.items():
        # All owners at once, because usually none has a hook and no name is needed.
        if any(map(attrgetter(attribute), owners.values())):
            yield next(name for name, owner in owners.items() if getattr(owner, attribute)), kind


def _is_pytorch_hook(hook: object) -> bool:
    """True for PyTorch's own hooks, such as its profiler's, which change nothing."""
    return str(getattr(hook, "__module__", "")).startswith("torch.")
