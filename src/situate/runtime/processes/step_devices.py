"""The devices of a placed step: a single one in this process, otherwise one worker each."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from situate import _core
from situate.runtime.device import StepRecord
from situate.runtime.processes.allocator import keep_freed_memory, return_freed_memory
from situate.runtime.processes.channels import ABORT_FLAG
from situate.runtime.processes.messages import (
    Assignment,
    FailureReport,
    OutOfMemory,
    Run,
    StepFailed,
    Store,
    WorkerEnded,
    failure_line,
    failure_report,
)
from situate.runtime.processes.signals import Commit
from situate.runtime.processes.worker import Work
from situate.runtime.processes.worker_pool import START_LIMIT_SECONDS, STEP_WORKER, WorkerPool
from situate.runtime.programs.seeds import kept_generator
from situate.runtime.settings import use_threads

if TYPE_CHECKING:
    import torch


class StepDevices(Protocol):
    """Devices that run a step together."""

    def run(self, order: Run) -> list[StepRecord]:
        """Run a step; the record of each device.

        Raises:
            StepFailed: names the device; nothing runs any more.
        """
        ...

    def store(self, order: Store) -> None:
        """Store the state of devices with memory of their own in common memory.

        Raises:
            StepFailed: see `run`.
        """
        ...

    def close(self) -> None:
        """End all devices."""
        ...


class LocalDevice:
    """The single device of a step, in this process, which keeps freed memory until `close`.

    Args:
        assignment, raw: as for a worker.
        count: threads of its kernels.
        commit: of the step.
    """

    def __init__(
        self,
        name: str,
        assignment: Assignment,
        raw: torch.Tensor,
        count: int | None,
        commit: Commit,
    ) -> None:
        self._name, self._threads, self._commit = name, count, commit
        # In the caller's process, draws must leave PyTorch's generator as it was.
        self._generator_guard = kept_generator if assignment.share.seeds else contextlib.nullcontext
        self._work = Work(assignment, raw, commit.begin)

    def run(self, order: Run) -> list[StepRecord]:
        keep_freed_memory()  # another step that was closed may have let it go
        try:
            with use_threads(self._threads), self._generator_guard():
                return [self._work.run_step(order)]
        except Exception as error:
            undone = order.keep and not self._commit.has_begun
            raise step_failure(self._name, failure_report(error), order.step, undone) from error

    def store(self, order: Store) -> None:
        if isinstance(answer := self._work.run(order), FailureReport):
            raise step_failure(self._name, answer, order.step, order.keep)

    def close(self) -> None:
        self._work.close()
        return_freed_memory()


class DeviceWorkers:
    """A worker for every device.

    Args:
        names: of the devices.
        assignments: of the devices.
        block: descriptor of the common memory.
        flags: in that memory.
    """

    def __init__(
        self,
        names: Sequence[str],
        assignments: Sequence[Assignment],
        block: int,
        flags: _core.threads.Flags,
    ) -> None:
        self._flags = flags
        self._pool = WorkerPool(STEP_WORKER)
        try:
            for name, assignment in zip(names, assignments, strict=True):
                self._pool.start(name, assignment.threads)
            self._pool.assign(self._pool.workers, assignments, block)
            self._answers(0, undone=True, limit=START_LIMIT_SECONDS)
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        """The process numbers, by device."""
        return [worker.process.pid for worker in self._pool.workers]

    def run(self, order: Run) -> list[StepRecord]:
        """See `StepDevices`."""
        return self._send_to_all(order)

    def store(self, order: Store) -> None:
        """See `StepDevices`."""
        self._send_to_all(order)

    def close(self) -> None:
        """See `StepDevices`."""
        self._pool.end()

    def _send_to_all(self, order: Run | Store) -> list[Any]:
        for worker in self._pool.workers:
            worker.send(order)
        try:
            return self._answers(order.step, order.keep)
        except BaseException:
            self._give_up(order.step)
            raise

    def _answers(self, step: int, undone: bool, limit: float | None = None) -> list[Any]:
        """The answers of all devices; see `step_failure`."""
        failure = partial(step_failure, step=step, undone=undone)
        try:
            return self._pool.answers(self._pool.workers, failure, limit)
        except WorkerEnded as process_end:
            when = f"in step {step}" if step else "before it was ready"
            raise StepFailed(
                f"{process_end} {when}; {_state_text(step, undone)}, and the next step starts new "
                "workers"
            ) from None

    def _give_up(self, step: int) -> None:
        """Abort the step for the other devices, then end all workers."""
        # Workers may wait for a tensor that will never come; the flag ends their waiting.
        self._flags.post(ABORT_FLAG, step)
        self._pool.drain()
        self.close()


def step_failure(name: str, failed: FailureReport, step: int, undone: bool) -> StepFailed:
    """The user's error for a device's failure, with the state of the model: as before the step if
    that is undone. Step 0 is the start of the device."""
    words = failure_line(failed)
    if step == 0 and failed.reason == "out_of_memory":
        return OutOfMemory(
            f"device {name!r}: out of memory before it was ready ({words}): plan with less memory "
            "for this device"
        )
    if step == 0:
        return StepFailed(f"device {name!r}: its process did not get ready: {words}")
    if failed.reason == "out_of_memory":
        return OutOfMemory(
            f"device {name!r}: out of memory in step {step} ({words}); "
            f"{_state_text(step, undone)}: plan with less memory for this device"
        )
    return StepFailed(f"device {name!r}: step {step} failed: {words}; {_state_text(step, undone)}")


def _state_text(step: int, undone: bool) -> str:
    """The state in which a failing step leaves the model."""
    if undone:
        return f"the model is as after step {max(step - 1, 0)}"
    return "the model may be updated in part, so load what was saved last"
