"""Parameter groups of an optimiser, as a placed step takes them once, when it is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from typing import TYPE_CHECKING

from situate.errors import SituateError
from situate.runtime.model_state.optimizers import check_options, kind_of

if TYPE_CHECKING:
    import torch

_AGAIN = "since the step was made: compile the plan again"


class Groups:
    """The optimiser's groups of parameters, which stay as they were when a step was made.

    Args:
        state: by name, the tensors of the model.
        updated: numbers of those that the step updates.

    Attributes:
        of: by number of a parameter that is updated, the group it is in.
        trained: those parameters, by name.

    Raises:
        SituateError: the optimiser is none that a placed step can run, or leaves out a parameter
            that the step updates.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        state: Mapping[str, torch.Tensor],
        updated: Iterable[int],
    ) -> None:
        self._optimizer, self._kind = optimizer, kind_of(optimizer)
        self._parameters = [[*group["params"]] for group in optimizer.param_groups]
        group_of = {id(p): group for group, held in enumerate(self._parameters) for p in held}
        self._held = {path: tensor for path, tensor in state.items() if id(tensor) in group_of}
        self._takes = self._takes_gradients()
        paths, numbers = list(state), list(updated)
        for path in (paths[number] for number in numbers):
            if path not in self._held:
                raise SituateError(
                    f"the optimizer leaves out parameter {path!r}, which the step updates: freeze "
                    "it before planning, or give it to the optimizer"
                )
        self.trained = {paths[number]: self._held[paths[number]] for number in numbers}
        self.of = {number: group_of[id(self._held[paths[number]])] for number in numbers}

    def check(self) -> None:
        """Refuse changes that only another step can follow.

        Raises:
            SituateError: a parameter was added, removed, moved to another group, frozen or
                unfrozen, or an option was set that a placed step does not have.
        """
        now = [group["params"] for group in self._optimizer.param_groups]
        if len(now) != len(self._parameters) or not all(map(_same, now, self._parameters)):
            raise SituateError(f"the optimizer's groups of parameters were changed {_AGAIN}")
        self._check_frozen()
        check_options(self._optimizer)
        groups = self._optimizer.param_groups
        if self._kind == "sgd" and any(group.get("momentum") for group in groups):
            raise SituateError(f"the optimizer's momentum was switched on {_AGAIN}")

    def _check_frozen(self) -> None:
        if (now := self._takes_gradients()) == self._takes:
            return
        changed = zip(self._held, now, self._takes, strict=True)
        path, takes = next((path, new) for path, new, old in changed if new != old)
        how = "unfrozen" if takes else "frozen"
        raise SituateError(f"parameter {path!r} was {how} {_AGAIN}")

    def _takes_gradients(self) -> list[bool]:
        return [tensor.requires_grad for tensor in self._held.values()]


def _same(some: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))
