"""Binding of the user's model and optimiser to the memory in which the devices work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from situate.errors import SituateError
from situate.runtime.memory import extent
from situate.runtime.model_state.optimizer_checks import HookCheck, ParameterGroups
from situate.runtime.model_state.state import Entry
from situate.runtime.programs.placed import PlacedProgram
from situate.runtime.programs.program import Program
from situate.torch_capture.names import state_name
from situate.torch_capture.tracing import Trace

if TYPE_CHECKING:
    import torch


def state_values(placed: PlacedProgram, model: torch.nn.Module) -> list[torch.Tensor]:
    """The tensors of the model that a program names, by number.

    A copy of a parameter is a tensor of its own with the parameter's numbers, and a part of one is
    a view.

    Raises:
        SituateError: the model lacks a tensor, or one has another shape, is not on the CPU, or
            shares memory that the step changes.
    """
    program = placed.program
    nodes, trace = program.step.number, program.step.trace
    captured = {state_name(node): node.meta["val"] for node in nodes if "val" in node.meta}
    owners = {path: trace.parameter(path) for path in placed.paths}
    state = {path: model_tensor(program, path, model) for path in dict.fromkeys(owners.values())}
    for path, owner in owners.items():
        tensor = _of_path(path, state[owner], trace)
        _check_type(path, tensor, captured.get(path, tensor))
    for path, tensor in state.items():
        if tensor.device.type != "cpu":
            raise SituateError(
                f"the model's {path!r} is on {tensor.device}: move the model to the CPU; devices "
                "with memory of their own work on copies"
            )
    changed = (trace.parameter(path) for path in program.gradients)
    _check_no_overlap(state, {*changed, *program.mutations})
    # A copy gets memory of its own, as every tensor does, when it is bound.
    return [_of_path(path, state[owner], trace) for path, owner in owners.items()]


def _of_path(path: str, owner: torch.Tensor, trace: Trace) -> torch.Tensor:
    """The tensor of a path: the model's own, the numbers of a copy, or a part of them."""
    if path in trace.parts:
        return trace.parts[path].view(owner.data)
    return owner.data if path in trace.copies else owner


def _check_type(path: str, tensor: torch.Tensor, captured: torch.Tensor) -> None:
    if type_and_shape(tensor) != type_and_shape(captured):
        raise SituateError(
            f"the model's {path!r} is {type_and_shape(tensor)}, and was {type_and_shape(captured)} "
            "when the step was captured: capture and plan again"
        )


def _check_no_overlap(state: Mapping[str, torch.Tensor], changed: Collection[str]) -> None:
    """Refuse changed tensors that share memory, since each gets memory of its own."""
    # Sorted by address, only neighbours can overlap; the farthest end so far decides.
    spans = sorted(
        (*address_range(tensor), path) for path, tensor in state.items() if tensor.numel()
    )
    reached, last = 0, ""
    for begin, end, path in spans:
        if begin < reached and not {path, last}.isdisjoint(changed):
            raise SituateError(
                f"the model's {last!r} and {path!r} share memory, and the step changes it: make "
                "them one parameter (`b.weight = a.weight`), or clone one"
            )
        reached, last = max((reached, last), (end, path))


def address_range(tensor: torch.Tensor) -> tuple[int, int]:
    """The addresses of a tensor's begin and end."""
    begin = tensor.data_ptr()
    return begin, begin + extent(tuple(tensor.shape), tensor.stride()) * tensor.itemsize


def _owner_dict(model: torch.nn.Module, path: str) -> tuple[Mapping[str, object], str]:
    """The dict with a parameter or buffer, and its name there; an empty dict for a constant."""
    owner, _, name = path.rpartition(".")
    try:
        module = model.get_submodule(owner)
    except AttributeError:
        return {}, name
    # The dicts themselves, in which a later replacement shows.
    return module._parameters if name in module._parameters else module._buffers, name


def type_and_shape(tensor: torch.Tensor) -> str:
    """Type and shape, such as `float32 (3, 4)`."""
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"


def model_tensor(program: Program, path: str, model: torch.nn.Module) -> torch.Tensor:
    """A parameter, a buffer or a constant of a step, by its path.

    Raises:
        SituateError: neither the model nor the trace has it.
    """
    import torch

    value: object = model
    for name in path.split("."):
        value = getattr(value, name, None)
    if value is None:
        constant = program.step.trace.constants.get(path)
        # A fake tensor has its known values in `constant`.
        value = getattr(constant, "constant", constant)
    if not isinstance(value, torch.Tensor):
        raise SituateError(f"the model has no tensor {path!r}: register it as a buffer")
    return value


class Bindings:
    """The tensors of a model and its optimiser's state, as views of the devices' memory.

    Args:
        placed: the program of the step.
        tensors: of the model, by number.
        state: the same in the devices' memory, by number.

    Attributes:
        groups: by number of an updated parameter, its group in the optimiser.

    Raises:
        SituateError: the optimiser leaves out a parameter that the step updates, or there are hooks
            that a placed step does not call.
    """

    def __init__(
        self,
        placed: PlacedProgram,
        model: torch.nn.Module,
        tensors: Sequence[torch.Tensor],
        optimizer: torch.optim.Optimizer | None,
        state: Sequence[Entry],
    ) -> None:
        self._optimizer, self._state, self._copies = optimizer, state, placed.copies
        self._wholes = {number: whole for number, (whole, _) in placed.parts.items()}
        self._tensors = list(zip(tensors, (entry.value for entry in state), strict=True))
        self._addresses = [entry.value.data_ptr() for entry in state]
        self._owners = [(path, *_owner_dict(model, path)) for path in placed.paths]
        self._versions: dict[tuple[int, int], int] = {}
        self.groups: dict[int, int] = {}
        self._checks: list[Callable[[], None]] = []
        if optimizer is not None:
            owners = (tensors[self._owner(number)] for number in range(len(tensors)))
            groups = ParameterGroups(
                optimizer, dict(zip(placed.paths, owners, strict=True)), placed.updated
            )
            hooks = HookCheck(model, optimizer, groups.trained)
            self._checks, self.groups = [groups.check, hooks.check], groups.of
        self.refresh()

    def changed(self) -> tuple[tuple[int, int], ...]:
        """The state that the caller has written since the last call: the number of a tensor, and
        that of a part, see `Entry.all_parts`."""
        now = {
            (number, part): tensor._version
            for number in range(len(self._tensors))
            for part, tensor in enumerate(self._caller_written(self._owner(number)))
        }
        # PyTorch counts the writes into a tensor; those of the devices go past this count.
        before, self._versions = self._versions, now
        return tuple(where for where, version in now.items() if before.get(where) != version)

    def _owner(self, number: int) -> int:
        """The number of the parameter that a tensor is a copy or a part of, or its own."""
        number = self._wholes.get(number, number)
        return self._copies.get(number, number)

    def _caller_written(self, number: int) -> tuple[torch.Tensor, ...]:
        """A tensor of the model and its optimiser state, as the caller sees and writes them."""
        return self._tensors[number][0], *self._state[number].all_parts[1:]

    def refresh(self) -> None:
        """Take over replacements of views, such as by `optimizer.load_state_dict`, and make all
        copies of a parameter equal to the model's.

        Raises:
            SituateError: a parameter or buffer was replaced, or has another type or shape; or the
                optimiser or hooks require another step.
        """
        for check in self._checks:
            check()
        if self._optimizer is not None:
            # PyTorch's schedules warn where `optimizer.step` was not called before them.
            self._optimizer._opt_called = True  # type: ignore[attr-defined]
        bound = zip(self._owners, self._tensors, self._addresses, strict=True)
        for number, ((path, store, name), (tensor, view), address) in enumerate(bound):
            # A part lies in the memory of its parameter.
            if number in self._wholes:
                continue
            if store.get(name, tensor) is not tensor:
                raise SituateError(
                    f"the model's {path!r} was replaced since the step was made: change it in "
                    "place, or compile the plan again"
                )
            # Whoever assigned `tensor.data` moved it out of the common memory: copy its numbers
            # back in.
            if tensor.data_ptr() != address:
                _check_type(path, tensor, view)
                view.copy_(tensor.detach())
                tensor.data = view
                # A tensor without a recorded version counts as changed.
                self._versions.pop((number, 0), None)
        own = {self._wholes.get(number, number) for number in self.groups}
        for number in own - self._copies.keys():
            self._refresh_optimizer_state(number)
        for number, whole in self._wholes.items():
            # Every part counts its own updates.
            self._state[number].count.copy_(self._state[whole].count)
        for number, source in self._copies.items():
            self._state[number].match(self._state[source])

    def _refresh_optimizer_state(self, number: int) -> None:
        assert self._optimizer is not None
        entry = self._state[number]
        optimizer_state = self._optimizer.state[self._tensors[number][0]]
        # SGD counts no steps.
        counts = bool(entry.moments.keys() - {"momentum_buffer"})
        parts = {**entry.moments, "step": entry.count} if counts else entry.moments
        for name, view in parts.items():
            if (value := optimizer_state.get(name)) is not view:
                _restore_part(f"{self._owners[number][0]!r}: the optimizer's {name!r}", view, value)
                optimizer_state[name] = view


def _restore_part(what: str, view: torch.Tensor, value: object) -> None:
    """Copy a value of the optimiser's state into a view; without a value, reset it."""
    import torch

    if value is None:
        view.zero_()
        return
    tensor = torch.as_tensor(value)
    if tensor.shape != view.shape and not tensor.numel() == view.numel() == 1:
        raise SituateError(
            f"{what} has shape {tuple(tensor.shape)}, and its memory here {tuple(view.shape)}: "
            "load the state of an optimizer of this model"
        )
    view.copy_(tensor.reshape(view.shape))
