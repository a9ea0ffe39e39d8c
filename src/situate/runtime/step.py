"""A step that runs where a plan says, called like the step that it replaces."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from situate import _core
from situate.errors import SituateError
from situate.runtime.device import Ran
from situate.runtime.hardware import RealDevice, own_cores
from situate.runtime.memory import anonymous_file, mapped
from situate.runtime.model_state.bindings import Bindings, state_values
from situate.runtime.model_state.common import Common, shared_places
from situate.runtime.model_state.exchange import Exchange
from situate.runtime.model_state.optimizers import Hyperparameters, hyperparameters
from situate.runtime.processes.commit import Commit
from situate.runtime.processes.messages import SPIN, Assignment, Run, Store
from situate.runtime.processes.signals import HeldSignals
from situate.runtime.processes.step_devices import DeviceWorkers, LocalDevice, StepDevices
from situate.runtime.programs.custom_ops import defining_modules
from situate.runtime.programs.placed import PlacedProgram
from situate.runtime.settings import settings
from situate.runtime.shares import share_of

if TYPE_CHECKING:
    import torch

StartDevices = Callable[
    [Sequence[str], Sequence[Assignment], int, _core.threads.Flags], StepDevices
]
"""Starts a process for every device, see `DeviceWorkers`."""


class PlacedStep:
    """A training step, or a model that infers, on the devices of a plan.

    Called with the model's inputs (and targets), it does what `loss(model, *inputs)`, `backward()`
    and `optimizer.step()` do, and returns the loss; for inference it returns what the model does.
    The model that was given holds the parameters at all times: save and load its state dict. What
    the step writes over its inputs is written when it has ended.

    A call that fails raises `SituateError` and leaves the model as it was after the last finished
    step; so does Ctrl-C. Use it as a context manager, or close it, to end its processes. Threads
    that call it take turns.

    Args:
        seed: of what the ops draw, whatever the placement.
        keep: a step that fails is undone; without it the model may then be updated in part, and
            devices with memory of their own bring its state back only when it is read.
        start: starts the devices, each in a process of its own also where there is only one.

    Attributes:
        model: the model that is trained.
        optimizer: what updates it; its hyperparameters can be changed between steps.
        ran: what each device that is used says of the last step.
    """

    def __init__(
        self,
        placed: PlacedProgram,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer | None,
        devices: Sequence[RealDevice],
        *,
        seed: int = 0,
        keep: bool = True,
        start: StartDevices | None = None,
    ) -> None:
        self.model, self.optimizer = model, optimizer
        self._start = start
        self.ran: list[Ran] = []
        self._placed, self._seed = placed, seed
        self._used = [(d, devices[d]) for d in placed.used]
        tensors = state_values(placed.program, placed.names, model)
        self._keep = keep
        mirrored = any(device.mirrored for _, device in self._used)
        # The state of such devices runs ahead of the model, which has it back only when it is read.
        self._ahead = mirrored and not keep
        # One device in this process needs no copies to undo an update from: it computes all
        # gradients first, and its updates are not interrupted.
        self._commits = keep and not mirrored and len(self._used) == 1 and start is None
        self._commit = Commit()
        self._share_memory(tensors)
        self._bindings = Bindings(
            model,
            tensors,
            placed.names,
            optimizer,
            self._common.state,
            placed.updated,
            placed.copies,
        )
        self._told: list[Hyperparameters] = []
        self._step = 0
        self._turn = threading.RLock()
        self._devices: StepDevices | None = None
        if self._ahead:
            self._sync_where_read()

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Run the step.

        Args:
            inputs: as the model and its loss take them.
            named: the inputs, where they were captured by name.

        Raises:
            SituateError: inputs of other shapes than were captured, or a device that failed.
        """
        return self._run(_joined(inputs, named))

    def timed(self, *inputs: Any, **named: Any) -> Any:
        """Run the step, and keep in `ran` when each op began and ended; otherwise as a call."""
        return self._run(_joined(inputs, named), timed=True)

    def _run(self, inputs: tuple[Any, ...], timed: bool = False, memory: bool = False) -> Any:
        with self._turn:
            return self._ran(inputs, timed, memory)

    def _ran(self, inputs: tuple[Any, ...], timed: bool, memory: bool) -> Any:
        given = self._exchange.checked(inputs)
        self._bindings.refresh()
        now = hyperparameters(self.optimizer) if self.optimizer else []
        news = None if now == self._told else now
        changed = self._bindings.changed() if self._ahead else ()
        read, written = self._exchange.read(given), self._exchange.written()
        shifts = self._exchange.shifts
        order = Run(self._step + 1, timed, news, memory, changed, self._keep, read, written, shifts)
        with self._commit as commit:
            try:
                self._devices = self._devices or self._started(now)
                self.ran = self._devices.run(order)
                commit.wait()
                self._exchange.write_back(given, written)
                self._step, self._told = order.step, now
            except BaseException:
                try:
                    commit.wait()
                finally:
                    self._give_up(order.step)
                raise
        return self._exchange.returned(written)

    def _give_up(self, step: int) -> None:
        try:
            self._end()
        finally:
            for entry in self._common.state:
                entry.undo(step)
            # Its number is given again, so that it draws the same: no flag may have it.
            self._common.flags.fill(0)

    def memory(self, *inputs: Any, **named: Any) -> list[int]:
        """Run the step and measure the largest bytes in use, of each device that is used: its
        parameters, buffers and what the optimiser keeps, its inputs, the room for what it receives,
        and what PyTorch allocated. Copies that a failing step is undone from are not counted, nor
        what a GPU has let go of while it still leaves.

        Raises:
            SituateError: as a call.
        """
        with self._turn:
            self._run(_joined(inputs, named), memory=True)
            said = self.ran
        home = self._placed.home
        found = []
        for (d, device), ran in zip(self._used, said, strict=True):
            state = (self._common.state[self._placed.names.state[p]] for p in home if home[p] == d)
            held = sum(part.nbytes for entry in state for part in entry.parts)
            given = zip(self._placed.inputs, self._common.inputs, strict=True)
            at_input = sum(tensor.nbytes for where, tensor in given if where == d)
            shared = self._placed.received(d) + at_input
            # A device with memory of its own allocates what it receives and its inputs.
            found.append(held + (0 if device.mirrored else shared) + (ran.peak or 0))
        return found

    @property
    def copies(self) -> dict[str, list[dict[str, torch.Tensor]]]:
        """By parameter its copies for the second replica and on: the `value` of each, and what the
        optimiser keeps of it; as of the last step that was brought back, see `sync`."""
        paths = list(self._placed.names.state)
        found: dict[str, list[dict[str, torch.Tensor]]] = {}
        for number, source in self._placed.copies.items():
            entry = self._common.state[number]
            parts = {"value": entry.value, **entry.moments}
            found.setdefault(paths[source], []).append(parts)
        return found

    def sync(self) -> None:
        """Bring the state of devices that have memory of their own, such as GPUs, back into the
        model; reading its state dict, or the optimizer's, does so too. Signals wait meanwhile.

        Raises:
            SituateError: a device failed; what it alone held is lost, and nothing runs any more.
        """
        if not self._ahead:
            return
        with self._turn:
            if self._devices is None:
                return
            with self._commit as commit:
                commit.wait()
                try:
                    self._devices.store(Store(self._step, self._bindings.changed()))
                except BaseException:
                    self._end()
                    raise

    def _sync_where_read(self) -> None:
        this = weakref.ref(self)

        def sync(*_: object) -> None:
            if (step := this()) is not None:
                step.sync()

        hooks = [self.model.register_state_dict_pre_hook(sync)]  # type: ignore[no-untyped-call]
        if self.optimizer is not None:
            hooks.append(self.optimizer.register_state_dict_pre_hook(sync))
        for hook in hooks:
            weakref.finalize(self, hook.remove)

    def close(self) -> None:
        """End the processes, once a step that another thread runs has ended; the next call starts
        new ones.

        Raises:
            SituateError: as `sync`, which is done first.
        """
        with self._turn:
            try:
                self.sync()
            finally:
                self._end()

    def _end(self) -> None:
        with HeldSignals():
            devices, self._devices = self._devices, None
            if devices is not None:
                devices.close()

    def __enter__(self) -> PlacedStep:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
            return
        with contextlib.suppress(SituateError):
            self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _share_memory(self, tensors: Sequence[torch.Tensor]) -> None:
        """Lay out what the devices share; those in processes of their own map it."""
        import torch

        placed = self._placed
        updated = () if self._commits else placed.updated
        changed = frozenset({*updated, *placed.overwritten} if self._keep else ())
        layout, places = shared_places(placed, tensors, changed)
        apart = len(self._used) > 1 or self._start is not None
        self._block = anonymous_file(layout.nbytes) if apart else None
        if self._block is None:
            raw = torch.zeros(layout.nbytes, dtype=torch.uint8, device="cpu")
        else:
            raw = mapped(self._block)
            weakref.finalize(self, os.close, self._block)
        self._places, self._common = places, Common(places, raw)
        self._exchange = Exchange(placed.program, self._common, apart)

    def _started(self, now: list[Hyperparameters]) -> StepDevices:
        assignments = [self._assignment(d, device, now) for d, device in self._used]
        if self._block is None:
            (_, device), *_ = self._used
            return LocalDevice(
                device.name, assignments[0], self._common.raw, device.threads, self._commit
            )
        names = [device.name for _, device in self._used]
        flags = _core.threads.make_flags(self._common.flags)
        return (self._start or DeviceWorkers)(names, assignments, self._block, flags)

    def _assignment(self, d: int, device: RealDevice, now: list[Hyperparameters]) -> Assignment:
        import torch

        return Assignment(
            self._places,
            share_of(
                self._placed,
                d,
                device,
                self._bindings.groups,
                seed=self._seed,
                commits=self._commits,
            ),
            device.torch,
            device.threads or torch.get_num_threads(),
            now,
            device.mirrored,
            SPIN if own_cores([device for _, device in self._used]) else 0.0,
            defining_modules(self._placed.names.kernels),
            settings(),
        )


def _joined(inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Inputs as they were captured: those by name are one dict."""
    return (*inputs, named) if named else inputs
