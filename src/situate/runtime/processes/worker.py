"""The worker process of one device: it maps the shared memory and runs its share of a placed
step."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from situate.runtime.processes.allocator import keep_freed_memory, record_memory
from situate.runtime.processes.messages import (
    END_OF_STEP,
    Assignment,
    FailureReport,
    Run,
    Store,
    failure_report,
)

if TYPE_CHECKING:
    import torch

    from situate.runtime.device import StepRecord
    from situate.runtime.model_state.state import Entry, Mirror


def main(connection: int) -> None:
    """Load PyTorch, and serve the process at the other end until it hangs up.

    Args:
        connection: descriptor of a socket.
    """
    set_up()
    with Connection(connection) as parent, contextlib.suppress(EOFError, OSError, RuntimeError):
        serve(parent)


def set_up() -> None:
    """Prepare this process, and load PyTorch while its parent still captures the model. Ctrl-C is
    for the parent alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_freed_memory()
    import torch  # noqa: F401 - so that it is there when work comes


def serve(parent: Connection) -> None:
    """Run one placed step, as often as the parent orders, until `END_OF_STEP`.

    Raises:
        EOFError, OSError: the parent hung up.
    """
    work = _work(parent)
    if isinstance(work, FailureReport):
        parent.send(work)
        return
    parent.send("ready")
    while (order := parent.recv()) is not END_OF_STEP:
        parent.send(work.run(order))


def _work(parent: Connection) -> Work | FailureReport:
    """The work of this device, in the memory whose descriptor arrives first."""
    from situate.runtime.memory import mapped

    # The mapping keeps the memory alive, so the descriptor can be closed at once.
    block = reduction.recv_handle(parent)
    try:
        assignment: Assignment = parent.recv()
        assignment.set_process()
        return Work(assignment, mapped(block))
    except Exception as error:
        return failure_report(error)
    finally:
        os.close(block)


class Work:
    """A device with its memory.

    Args:
        raw: the common memory.
        commit: see `Device`.
    """

    def __init__(
        self, assignment: Assignment, raw: torch.Tensor, commit: Callable[[], None] | None = None
    ) -> None:
        import torch

        from situate import _core
        from situate.runtime.device import Device
        from situate.runtime.model_state.state import Common
        from situate.runtime.processes.channels import Channels
        from situate.runtime.programs.custom_ops import load

        load(assignment.modules)
        self._where = device = torch.device(assignment.device)
        self._common = common = Common(assignment.places, raw)
        self._results: Sequence[torch.Tensor] = common.results
        results = [self._writer(k) for k in range(len(common.results))]
        channels = Channels(
            _core.threads.make_flags(common.flags, assignment.spin), common.slots, device
        )
        self._mirror = _mirror(assignment, common.state, device) if assignment.mirrored else None
        state = self._mirror.state if self._mirror else common.state
        self._device = Device(
            assignment.share, state, channels, assignment.hyperparameters, results, device, commit
        )

    def run_step(self, order: Run) -> StepRecord:
        """Run a step, and store the state if the order says so."""
        record = self._run(order)
        if order.keep:
            self._store_state(Store(order.step))
        return record

    def _run(self, order: Run) -> StepRecord:
        if self._mirror and order.keep:
            self._mirror.load_all()
        elif self._mirror:
            self._mirror.load(order.changed)
        if order.hyperparameters is not None:
            self._device.tell(order.hyperparameters)
        if order.shifts:
            self._common.shift_inputs(order.shifts)
        inputs, run = order.inputs or self._common.inputs, self._device.run
        self._results = order.results or self._common.results
        try:
            if order.memory:
                run_step = partial(run, order.step, inputs, order.timed, "perf_counter")
                return record_memory(run_step, self._where)
            return run(order.step, inputs, order.timed)
        finally:
            self._results = self._common.results

    def close(self) -> None:
        """Release the device's memory."""
        self._device.close()

    def _writer(self, result: int) -> Callable[[torch.Tensor], object]:
        # Looked up at each call, because an order may bring results of its own.
        return lambda value: self._results[result].copy_(value)

    def _store_state(self, order: Store) -> str:
        if self._mirror:
            self._mirror.load(order.changed)
            self._mirror.store(order.step)
        return "stored"

    def run(self, order: Run | Store) -> Any:
        """Run or store as ordered. Returns the answer: a record, or a failure report."""
        from situate.runtime.processes.channels import Aborted

        try:
            if isinstance(order, Store):
                return self._store_state(order)
            return self.run_step(order)
        except Aborted:
            return FailureReport("aborted", "")
        except Exception as error:
            return failure_report(error)


def _mirror(assignment: Assignment, host: list[Entry], device: torch.device) -> Mirror:
    from situate.runtime.model_state.state import Mirror

    changed = [*assignment.share.updates, *assignment.share.copied]
    return Mirror(host, assignment.share.here, changed, device)
