"""Ties the user's model and optimiser to the memory in which the devices work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from situate.errors import SituateError
from situate.runtime.memory import extent
from situate.runtime.model_state.optimizer_checks import Groups, Hooks
from situate.runtime.model_state.state import Entry
from situate.runtime.programs.program import Program
from situate.runtime.programs.source import Names
from situate.torch_capture.names import held

if TYPE_CHECKING:
    import torch


def state_values(program: Program, names: Names, model: torch.nn.Module) -> list[torch.Tensor]:
    """The tensors of the model that a program names, by number; for a copy of a parameter a tensor
    of its own with the parameter's numbers.

    Raises:
        SituateError: the model has none of that name, or one of another shape, on another device
            than the CPU, or in memory of another that the step changes.
    """
    nodes = program.step.number
    captured = {held(node): node.meta["val"] for node in nodes if "val" in node.meta}
    trace = program.step.trace
    paths = (trace.parameter(path) for path in names.state)
    state = {path: _value(program, path, model) for path in paths}
    for path, tensor in state.items():
        _check(path, tensor, captured.get(path, tensor))
        if tensor.device.type != "cpu":
            raise SituateError(
                f"the model's {path!r} is on {tensor.device}: move the model to the CPU; devices "
                "with memory of their own work on copies"
            )
    _check_apart(state, {*program.gradients, *program.mutations})
    # A copy gets memory of its own, as every tensor does, when it is bound.
    return [
        state[trace.parameter(path)].data if path in trace.copies else state[path]
        for path in names.state
    ]


def _check(path: str, tensor: torch.Tensor, captured: torch.Tensor) -> None:
    if described(tensor) != described(captured):
        raise SituateError(
            f"the model's {path!r} is {described(tensor)}, and was {described(captured)} when the "
            "step was captured: capture and plan again"
        )


def _check_apart(state: Mapping[str, torch.Tensor], changed: Collection[str]) -> None:
    """Refuse tensors that share memory, of which each will have its own."""
    spans = sorted((*span(tensor), path) for path, tensor in state.items() if tensor.numel())
    reached, last = 0, ""
    for begin, end, path in spans:
        if begin < reached and not {path, last}.isdisjoint(changed):
            raise SituateError(
                f"the model's {last!r} and {path!r} share memory, and the step changes it: make "
                "them one parameter (`b.weight = a.weight`), or clone one"
            )
        reached, last = max((reached, last), (end, path))


def span(tensor: torch.Tensor) -> tuple[int, int]:
    """The addresses at which a tensor begins and ends."""
    begin = tensor.data_ptr()
    return begin, begin + extent(tuple(tensor.shape), tensor.stride()) * tensor.itemsize


def _held(model: torch.nn.Module, path: str) -> tuple[Mapping[str, object], str]:
    """The dict that holds a parameter or buffer, and its name there; none holds a constant."""
    owner, _, name = path.rpartition(".")
    try:
        module = model.get_submodule(owner)
    except AttributeError:
        return {}, name
    return module._parameters if name in module._parameters else module._buffers, name


def described(tensor: torch.Tensor) -> str:
    """Type and shape, such as `float32 (3, 4)`."""
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"


def _value(program: Program, path: str, model: torch.nn.Module) -> torch.Tensor:
    import torch

    found: object = model
    for name in path.split("."):
        found = getattr(found, name, None)
    if found is None:
        constant = program.step.trace.constants.get(path)
        found = getattr(constant, "constant", constant)
    if not isinstance(found, torch.Tensor):
        raise SituateError(f"the model has no tensor {path!r}: register it as a buffer")
    return found


class Bindings:
    """The tensors of a model and what its optimiser keeps, as views of the devices' memory.

    Args:
        tensors: of the model, by number.
        state: those in the devices' memory, by number.
        updated: numbers of the parameters that the step updates.
        copies: by number of a further copy of a parameter, that of the parameter.

    Attributes:
        groups: by number of a parameter that is updated, the optimiser's group it is in.

    Raises:
        SituateError: the optimiser leaves out a parameter that the step updates, or there are
            hooks that a placed step does not call.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        tensors: Sequence[torch.Tensor],
        names: Names,
        optimizer: torch.optim.Optimizer | None,
        state: Sequence[Entry],
        updated: Iterable[int],
        copies: Mapping[int, int],
    ) -> None:
        self._optimizer, self._state, self._copies = optimizer, state, copies
        self._tensors = list(zip(tensors, (entry.value for entry in state), strict=True))
        self._addresses = [entry.value.data_ptr() for entry in state]
        self._held = [(path, *_held(model, path)) for path in names.state]
        self._versions: dict[tuple[int, int], int] = {}
        self.groups: dict[int, int] = {}
        self._checks: list[Callable[[], None]] = []
        if optimizer is not None:
            owners = (tensors[copies.get(number, number)] for number in range(len(tensors)))
            groups = Groups(optimizer, dict(zip(names.state, owners, strict=True)), updated)
            hooks = Hooks(model, optimizer, groups.trained)
            self._checks, self.groups = [groups.check, hooks.check], groups.of
        self.refresh()

    def changed(self) -> tuple[tuple[int, int], ...]:
        """The state that somebody but the devices has written since the last call: the number of a
        tensor and that of a part, see `Entry.all_parts`."""
        now = {
            (number, part): written._version
            for number in range(len(self._tensors))
            for part, written in enumerate(self._written(self._copies.get(number, number)))
        }
        # PyTorch counts the writes into a tensor; those of the devices go past this count.
        before, self._versions = self._versions, now
        return tuple(where for where, version in now.items() if before.get(where) != version)

    def _written(self, number: int) -> tuple[torch.Tensor, ...]:
        """A tensor of the model and what is kept of it: what others than the devices write."""
        return self._tensors[number][0], *self._state[number].all_parts[1:]

    def refresh(self) -> None:
        """Take what was put in place of a view since, such as by `optimizer.load_state_dict`, and
        let all copies of a parameter be as the model's.

        Raises:
            SituateError: a parameter or buffer is another one, or of another type or shape; or
                the optimiser or hooks ask for what only another step can do.
        """
        for check in self._checks:
            check()
        if self._optimizer is not None:
            # PyTorch's schedules warn where `optimizer.step` was not called before them.
            self._optimizer._opt_called = True  # type: ignore[attr-defined]
        bound = zip(self._held, self._tensors, self._addresses, strict=True)
        for number, ((path, store, name), (tensor, view), address) in enumerate(bound):
            if store.get(name, tensor) is not tensor:
                raise SituateError(
                    f"the model's {path!r} was replaced since the step was made: change it in "
                    "place, or compile the plan again"
                )
            # Whoever assigned `tensor.data` moved it out of the common memory: copy its numbers
            # back in.
            if tensor.data_ptr() != address:
                _check(path, tensor, view)
                view.copy_(tensor.detach())
                tensor.data = view
                self._versions.pop((number, 0), None)
        for number in self.groups.keys() - self._copies.keys():
            self._refresh_kept(number)
        for number, source in self._copies.items():
            self._state[number].match(self._state[source])

    def _refresh_kept(self, number: int) -> None:
        assert self._optimizer is not None
        entry = self._state[number]
        given = self._optimizer.state[self._tensors[number][0]]
        kept = (
            {**entry.moments, "step": entry.count} if "exp_avg" in entry.moments else entry.moments
        )
        for name, view in kept.items():
            if (value := given.get(name)) is not view:
                _put(f"{self._held[number][0]!r}: the optimizer's {name!r}", view, value)
                given[name] = view


def _put(what: str, view: torch.Tensor, value: object) -> None:
    """Copy what an optimiser keeps into a view; without a value, it starts anew."""
    import torch

    if value is None:
        view.zero_()
        return
    given = torch.as_tensor(value)
    if given.shape != view.shape and not given.numel() == view.numel() == 1:
        raise SituateError(
            f"{what} has shape {tuple(given.shape)}, and what it is kept in {tuple(view.shape)}: "
            "load the state of an optimizer of this model"
        )
    view.copy_(given.reshape(view.shape))
