"""A step that runs on the devices of a plan, called like the step that it replaces."""

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
from situate.runtime.device import StepRecord, share_of
from situate.runtime.hardware import RealDevice, has_core_per_thread
from situate.runtime.memory import anonymous_file, mapped
from situate.runtime.model_state.bindings import Bindings, state_values
from situate.runtime.model_state.exchange import Exchange
from situate.runtime.model_state.optimizers import Hyperparameters, hyperparameters
from situate.runtime.model_state.state import Common, shared_places
from situate.runtime.processes.messages import SPIN_SECONDS, Assignment, Run, Store
from situate.runtime.processes.signals import Commit, HeldSignals
from situate.runtime.processes.step_devices import DeviceWorkers, LocalDevice, StepDevices
from situate.runtime.programs.custom_ops import defining_modules
from situate.runtime.programs.placed import PlacedProgram
from situate.runtime.settings import current_settings

if TYPE_CHECKING:
    import torch

StartDevices = Callable[
    [Sequence[str], Sequence[Assignment], int, _core.threads.Flags], StepDevices
]
"""Starts a process for every device, see `DeviceWorkers`."""


class PlacedStep:
    """A training step, or a model in inference, on the devices of a plan.

    Called with the model's inputs (and targets), it does the work of `loss(model, *inputs)`,
    `backward()` and `optimizer.step()`, and returns the loss; for inference it returns the model's
    results. The given model holds the parameters at all times: save and load its state dict. Inputs
    that the step overwrites are written at its end.

    A call that fails raises `SituateError` and leaves the model as after the last finished step; so
    does Ctrl-C. Use the step as a context manager, or close it, to end its processes. Threads that
    call it take turns.

    Args:
        seed: of the ops' random draws, which do not depend on the placement.
        keep: undo a failed step. Without it the model may then be updated in part, and devices with
            memory of their own return their state only when it is read.
        start: starts the devices, each in a process of its own even if there is only one.

    Attributes:
        model: the trained model.
        optimizer: its optimiser; hyperparameters may change between steps.
        records: the record of each used device about the last step.
    """

    def __init__(
        self,
        program: PlacedProgram,
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
        self.records: list[StepRecord] = []
        self._program, self._seed = program, seed
        self._used = [(d, devices[d]) for d in program.used]
        tensors = state_values(program, model)
        self._keep = keep
        mirrored = any(device.mirrored for _, device in self._used)
        # The state of such devices runs ahead of the model until somebody reads it.
        self._ahead = mirrored and not keep
        # One device in this process needs no copies to undo an update from: it computes all
        # gradients first, and its updates are not interrupted.
        self._commits = keep and not mirrored and len(self._used) == 1 and start is None
        self._commit = Commit()
        self._share_memory(tensors)
        self._bindings = Bindings(program, model, tensors, optimizer, self._common.state)
        self._hyperparameters: list[Hyperparameters] = []
        self._step = 0
        # Re-entrant: `memory` runs a step, and `close` runs `sync`, under the same lock.
        self._turn = threading.RLock()
        self._devices: StepDevices | None = None
        if self._ahead:
            self._sync_where_read()

    def __call__(self, *inputs: Any, **inputs_by_name: Any) -> Any:
        """Run the step.

        Args:
            inputs: the inputs of the model and its loss.
            inputs_by_name: the inputs, if they were captured by name.

        Raises:
            SituateError: inputs of other shapes than at capture, or a device that failed.
        """
        return self._run(_joined(inputs, inputs_by_name))

    def timed(self, *inputs: Any, **inputs_by_name: Any) -> Any:
        """Run the step, with start and end of each op in `records`."""
        return self._run(_joined(inputs, inputs_by_name), timed=True)

    def _run(self, inputs: tuple[Any, ...], timed: bool = False, memory: bool = False) -> Any:
        with self._turn:
            return self._run_once(inputs, timed, memory)

    def _run_once(self, inputs: tuple[Any, ...], timed: bool, memory: bool) -> Any:
        caller_tensors = self._exchange.check_inputs(inputs)
        self._bindings.refresh()
        now = hyperparameters(self.optimizer) if self.optimizer else []
        changed = self._bindings.changed() if self._ahead else ()
        step_inputs = self._exchange.read(caller_tensors)
        step_results = self._exchange.result_buffers()
        order = Run(
            self._step + 1,
            timed,
            hyperparameters=None if now == self._hyperparameters else now,
            memory=memory,
            changed=changed,
            keep=self._keep,
            inputs=step_inputs,
            results=step_results,
            shifts=self._exchange.shifts,
        )
        with self._commit as commit:
            try:
                self._devices = self._devices or self._start_devices(now)
                self.records = self._devices.run(order)
                commit.wait()
                self._exchange.write_back(caller_tensors, step_results)
                self._step, self._hyperparameters = order.step, now
            except BaseException:
                try:
                    commit.wait()
                finally:
                    self._give_up(order.step)
                raise
        return self._exchange.restore_results(step_results)

    def _give_up(self, step: int) -> None:
        try:
            self._end()
        finally:
            for entry in self._common.state:
                entry.undo(step)
            # The next call repeats the number, so that its draws are the same: no flag may hold it.
            self._common.flags.fill(0)

    def memory(self, *inputs: Any, **inputs_by_name: Any) -> list[int]:
        """Run the step and measure the peak bytes of each used device.

        These are its parameters, buffers, optimiser state and inputs, the memory for received
        tensors, and PyTorch's allocations. Copies for undoing a step do not count, nor does memory
        that a GPU has released while it is still being sent.

        Raises:
            SituateError: see a call.
        """
        with self._turn:
            self._run(_joined(inputs, inputs_by_name), memory=True)
            records = self.records
        home = self._program.home
        peaks = []
        for (d, device), record in zip(self._used, records, strict=True):
            state = (self._common.state[self._program.names.state[p]] for p in home if home[p] == d)
            state_bytes = sum(part.nbytes for entry in state for part in entry.parts)
            input_tensors = zip(self._program.inputs, self._common.inputs, strict=True)
            input_bytes = sum(tensor.nbytes for where, tensor in input_tensors if where == d)
            shared = self._program.received(d) + input_bytes
            # A device with memory of its own allocates what it receives and its inputs.
            peaks.append(state_bytes + (0 if device.mirrored else shared) + (record.peak or 0))
        return peaks

    @property
    def copies(self) -> dict[str, list[dict[str, torch.Tensor]]]:
        """By parameter, its copies from the second replica on: the `value` of each, and its
        optimiser state; as of the last step whose state was returned, see `sync`."""
        paths, parts = self._program.paths, self._program.parts
        copies_by_name: dict[str, list[dict[str, torch.Tensor]]] = {}
        for number, source in self._program.copies.items():
            if number in parts:
                continue
            entry = self._common.state[number]
            state = {"value": entry.value, **entry.moments}
            copies_by_name.setdefault(paths[source], []).append(state)
        return copies_by_name

    def sync(self) -> None:
        """Bring the state of devices with memory of their own, such as GPUs, back into the model.

        Reading the state dict of the model or the optimiser does so too. Signals wait meanwhile.

        Raises:
            SituateError: a device failed; state that it alone held is lost, and nothing runs any
                more.
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
        # The hooks belong to the model and the optimiser, which may outlive the step.
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
        """End the processes, after a step that another thread runs; the next call starts new ones.

        Raises:
            SituateError: see `sync`, which runs first.
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
        """Lay out the devices' shared memory, which other processes map."""
        import torch

        program = self._program
        updated = () if self._commits else program.updated
        changed = frozenset({*updated, *program.overwritten} if self._keep else ())
        layout, places = shared_places(program, tensors, changed)
        has_processes = len(self._used) > 1 or self._start is not None
        self._block = anonymous_file(layout.nbytes) if has_processes else None
        if self._block is None:
            raw = torch.zeros(layout.nbytes, dtype=torch.uint8, device="cpu")
        else:
            raw = mapped(self._block)
            weakref.finalize(self, os.close, self._block)
        self._places, self._common = places, Common(places, raw)
        self._exchange = Exchange(program.program, self._common, has_processes)

    def _start_devices(self, now: list[Hyperparameters]) -> StepDevices:
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
                self._program,
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
            SPIN_SECONDS if has_core_per_thread([device for _, device in self._used]) else 0.0,
            defining_modules(self._program.names.kernels),
            current_settings(),
        )


def _joined(inputs: tuple[Any, ...], inputs_by_name: dict[str, Any]) -> tuple[Any, ...]:
    """Inputs as at capture: those by name are one dict."""
    return (*inputs, inputs_by_name) if inputs_by_name else inputs
