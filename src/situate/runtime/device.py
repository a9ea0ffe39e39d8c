"""A device at work: its source, compiled and bound to kernels, state, channels and updates."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

from situate.runtime.hardware import RealDevice
from situate.runtime.model_state.optimizers import Hyperparameters
from situate.runtime.model_state.state import Entry
from situate.runtime.model_state.update import Update, rehearse
from situate.runtime.processes.channels import Channels
from situate.runtime.programs.kernels import kernel, laid_out
from situate.runtime.programs.placed import PlacedProgram
from situate.runtime.programs.seeds import seed_of

if TYPE_CHECKING:
    import torch


Clock = Callable[[], float]


@dataclass(frozen=True)
class Share:
    """The share of one device in a placed step; it can be sent to another process.

    Attributes:
        text: the step as a Python function, see `situate.runtime.programs.source`.
        timed: the same, with a clock reading before and after each op.
        kernels, constants: the values of `f0`, `f1`, ... and `c0`, `c1`, ... in the text.
        updates: the optimiser's group of each parameter updated here, by number.
        optimizer: the kind of optimiser.
        channels, seeds: their numbers in the program.
        seed: of the random numbers.
        here: numbers of the state on this device.
        copied: numbers of the state that it overwrites, except parameters in `updates`.
        clock: name in module `time` of the clock for timed ops.
        one: dtype of the gradient of the loss by itself.
    """

    text: str
    timed: str
    kernels: tuple[str, ...]
    constants: tuple[Any, ...]
    updates: dict[int, int]
    optimizer: str
    channels: int
    seeds: int
    seed: int
    here: frozenset[int] = frozenset()
    copied: frozenset[int] = frozenset()
    clock: str = "perf_counter"
    one: torch.dtype | None = None


@dataclass(frozen=True)
class StepRecord:
    """A device's record of a step; times are of the machine's monotonic clock.

    Attributes:
        start, end: of the step on this device.
        waited: seconds of waiting for tensors of other devices; a GPU may have computed meanwhile.
        op_starts, op_ends: by op, for timed ops.
        peak: most bytes that PyTorch had allocated beyond those at the start, if measured.
        allocated: by op, the same from the op's start to its end.
    """

    start: float
    end: float
    waited: float
    op_starts: dict[int, float]
    op_ends: dict[int, float]
    peak: int | None = None
    allocated: dict[int, int] = field(default_factory=dict)


class Device:
    """Runs its share of every step.

    Args:
        state: the tensors of the model, by number.
        hyperparameters: of the updates, by group.
        results: take the results of the step.
        commit: called before the updates, if the share's text says so.
    """

    def __init__(
        self,
        share: Share,
        state: Sequence[Entry],
        channels: Channels,
        hyperparameters: Sequence[Hyperparameters],
        results: Sequence[Callable[[torch.Tensor], object]],
        device: torch.device,
        commit: Callable[[], None] | None = None,
    ) -> None:
        import torch

        self._share, self._state, self._channels = share, state, channels
        self._device = device
        self._updates = {
            k: Update(share.optimizer, state[k], hyperparameters[group])
            for k, group in share.updates.items()
        }
        self._op_starts: dict[int, float] = {}
        self._op_ends: dict[int, float] = {}
        # The names that the source of the share calls, see `programs/source.py`.
        self._names: dict[str, Any] = {
            "began": self._op_starts,
            "ended": self._op_ends,
            "commit": commit,
            "laid_out": laid_out,
            "one": torch.ones((), dtype=share.one, device=device),
        }
        self._names |= {f"f{k}": kernel(name, device) for k, name in enumerate(share.kernels)}
        self._names |= {f"c{k}": _on(value, device) for k, value in enumerate(share.constants)}
        self._names |= {f"p{k}": entry.value for k, entry in enumerate(state)}
        self._names |= {f"take{k}": channels.taker(k) for k in range(share.channels)}
        self._names |= {f"send{k}": channels.sender(k) for k in range(share.channels)}
        self._names |= {f"post{k}": channels.poster(k) for k in range(share.channels)}
        self._names |= {f"s{k}": channels.memory(k) for k in range(share.channels)}
        self._names |= {f"done{k}": write_result for k, write_result in enumerate(results)}
        self._names |= {f"seed{k}": self._seeder(k) for k in range(share.seeds)}
        self._names |= {f"keep{k}": self._keeper(k) for k in range(len(state))}
        self._names |= {f"update{k}": self._updater(k) for k in share.updates}
        self._step = _compiled(share.text, self._names)
        self._timed: FunctionType | None = None

    def tell(self, hyperparameters: Sequence[Hyperparameters]) -> None:
        """Use other hyperparameters from now on.

        Raises:
            Exception: the error of an update with them; nothing has changed.
        """
        updates = self._share.updates.items()
        # Once for each group and type, on a single number: all are checked before any update is
        # told.
        for group, dtype in {(group, self._state[k].value.dtype) for k, group in updates}:
            rehearse(self._share.optimizer, hyperparameters[group], dtype)
        for number, update in self._updates.items():
            update.set_hyperparameters(hyperparameters[self._share.updates[number]])

    def run(
        self,
        step: int,
        inputs: Sequence[torch.Tensor],
        timed: bool = False,
        clock: str | None = None,
    ) -> StepRecord:
        """Run step number `step`, counted from 1; `clock` replaces the share's clock."""
        import torch

        self._channels.step, self._channels.waited = step, 0.0
        self._op_starts.clear()
        self._op_ends.clear()
        function = self._step
        # The timed text is compiled at its first use only.
        if timed:
            self._timed = function = self._timed or _compiled(self._share.timed, self._names)
        tensors_by_name = {f"x{k}": tensor for k, tensor in enumerate(inputs)}
        # Only inputs that the text reads are moved to the device, and let go of after the step.
        names_read = tensors_by_name.keys() & set(function.__code__.co_names)
        self._names |= {name: tensors_by_name[name].to(self._device) for name in names_read}
        self._names["now"] = device_clock(clock or self._share.clock, self._device)
        wall = device_clock("perf_counter", self._device)
        try:
            # The captured step holds its casts and its gradients as ops: PyTorch must add none.
            with torch.inference_mode(), torch._C._DisableAutocast(), _current(self._device):
                start = wall()
                function()
                self._channels.settle()
                end = wall()
        finally:
            self._names |= dict.fromkeys(names_read)
        return StepRecord(
            start, end, self._channels.waited, dict(self._op_starts), dict(self._op_ends)
        )

    def close(self) -> None:
        """Clear the step's names. They refer to the step, a cycle that would keep it alive."""
        self._names.clear()

    def _seeder(self, number: int) -> Callable[[], None]:
        import torch

        def seed() -> None:
            torch.manual_seed(seed_of(self._share.seed, self._channels.step, number))

        return seed

    def _keeper(self, number: int) -> Callable[[], None]:
        entry, channels = self._state[number], self._channels

        def keep() -> None:
            channels.wait_until_left(entry.value)
            entry.keep(channels.step)

        return keep

    def _updater(self, number: int) -> Callable[[torch.Tensor], None]:
        value, update, channels = self._state[number].value, self._updates[number], self._channels

        def updated(gradient: torch.Tensor) -> None:
            channels.wait_until_left(value)
            update(gradient, channels.step)

        return updated


def _current(device: torch.device) -> AbstractContextManager[None]:
    """A block in which a device is PyTorch's current one, for user-defined kernels without a
    device."""
    import torch

    if device.type == "cpu":
        return nullcontext()
    current: AbstractContextManager[None] = torch.get_device_module(device).device(device)
    return current


def _on(value: object, device: torch.device) -> object:
    """A constant argument, with this device in place of another."""
    import torch

    return device if isinstance(value, torch.device) else value


def _compiled(text: str, names: dict[str, Any]) -> FunctionType:
    # The text defines `step`, whose globals are these names: they are looked up in every run.
    exec(compile(text, "<placed step>", "exec"), names)
    step: FunctionType = names["step"]
    return step


def share_of(
    program: PlacedProgram,
    number: int,
    device: RealDevice,
    groups: Mapping[int, int],
    *,
    seed: int,
    commits: bool,
) -> Share:
    """The share of device `number`.

    Args:
        groups: by number of an updated parameter, the optimiser's group.
        commits: the updates come last, after a call of `commit`.
    """
    names = program.names
    home = {names.state[path]: where for path, where in program.home.items()}
    here = frozenset(k for k, where in home.items() if where == number)
    text = partial(
        program.sources[number].text,
        direct=not device.mirrored,
        commits=commits,
        laid_out=device.torch != "cpu",
    )
    return Share(
        text(timed=False),
        text(timed=True),
        tuple(names.kernels),
        tuple(value for _, value in names.constants.values()),
        {k: groups[k] for k in program.updated if k in here},
        program.program.optimizer,
        len(program.channels),
        len({*names.seeds.values()}),
        seed,
        here,
        here & program.overwritten,
        one=names.one,
    )


def device_clock(name: str, device: torch.device) -> Clock:
    """The clock of this name in module `time`. A GPU works asynchronously, so its clock is read
    when all queued work is done."""
    import torch

    clock: Clock = getattr(time, name)
    if device.type == "cpu":
        return clock

    def synchronised_clock() -> float:
        torch.get_device_module(device).synchronize(device)
        return clock()

    return synchronised_clock
