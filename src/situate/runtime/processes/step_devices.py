"""The devices of a placed step: in this process where one works alone, else a worker each."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from situate import _core
from situate.runtime.device import Ran
from situate.runtime.processes.allocator import keep_freed_memory, return_freed_memory
from situate.runtime.processes.channels import ABORT
from situate.runtime.processes.commit import Commit
from situate.runtime.processes.failures import OutOfMemory, StepFailed, WorkerEnded, first_line
from situate.runtime.processes.messages import Assignment, Failed, Run, Store, failed_with
from situate.runtime.processes.threads import threads
from situate.runtime.processes.worker import Work
from situate.runtime.processes.worker_pool import START_LIMIT, START_WORKER, WorkerPool
from situate.runtime.programs.seeds import kept_generator

if TYPE_CHECKING:
    import torch


class StepDevices(Protocol):
    """Devices that run a step together."""

    def run(self, order: Run) -> list[Ran]:
        """Run a step, and return what each device says of it.

        Raises:
            StepFailed: names the device; nothing runs any more.
        """
        ...

    def store(self, order: Store) -> None:
        """Bring the state of devices with memory of their own back.

        Raises:
            StepFailed: as `run`.
        """
        ...

    def close(self) -> None:
        """End all that runs."""
        ...


class LocalDevice:
    """The one device of a step, in this process, which keeps freed memory until this is closed.

    Args:
        assignment, raw: as for a worker.
        count: threads that its kernels may use.
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
        self._kept = kept_generator if assignment.share.seeds else contextlib.nullcontext
        self._work = Work(assignment, raw, commit.begin)

    def run(self, order: Run) -> list[Ran]:
        keep_freed_memory()  # another step that was closed may have let it go
        try:
            with threads(self._threads), self._kept():
                return [self._work.ran(order)]
        except Exception as error:
            undone = order.keep and not self._commit.begun
            raise step_failure(self._name, failed_with(error), order.step, undone) from error

    def store(self, order: Store) -> None:
        if isinstance(said := self._work.run(order), Failed):
            raise step_failure(self._name, said, order.step, order.keep)

    def close(self) -> None:
        self._work.close()
        return_freed_memory()


class DeviceWorkers:
    """A worker for every device.

    Args:
        names: of the devices.
        assignments: what each is told first.
        block: descriptor of the common memory.
        flags: in it.
    """

    def __init__(
        self,
        names: Sequence[str],
        assignments: Sequence[Assignment],
        block: int,
        flags: _core.threads.Flags,
    ) -> None:
        self._flags = flags
        self._pool = WorkerPool(START_WORKER)
        try:
            for name, assignment in zip(names, assignments, strict=True):
                self._pool.start(name, assignment.threads)
            self._pool.assign(self._pool.workers, assignments, block)
            self._answers(0, undone=True, limit=START_LIMIT)
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        """The processes, by device."""
        return [worker.process.pid for worker in self._pool.workers]

    def run(self, order: Run) -> list[Ran]:
        """See `StepDevices`."""
        return self._told(order)

    def store(self, order: Store) -> None:
        """See `StepDevices`."""
        self._told(order)

    def close(self) -> None:
        """See `StepDevices`."""
        self._pool.end()

    def _told(self, order: Run | Store) -> list[Any]:
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
        except WorkerEnded as ended:
            when = f"in step {step}" if step else "before it was ready"
            raise StepFailed(
                f"{ended} {when}; {_left(step, undone)}, and the next step starts new workers"
            ) from None

    def _give_up(self, step: int) -> None:
        """Let the others stop waiting; whoever does not answer is killed, and so are all."""
        self._flags.post(ABORT, step)
        self._pool.drain()
        self.close()


def step_failure(name: str, failed: Failed, step: int, undone: bool) -> StepFailed:
    """The error that tells users of a device's failure, and how it leaves the model: as before the
    step where that is undone. Step 0 is the start of the device."""
    words = first_line(failed)
    if step == 0 and failed.reason == "out_of_memory":
        return OutOfMemory(
            f"device {name!r}: out of memory before it was ready ({words}): plan with less memory "
            "for this device"
        )
    if step == 0:
        return StepFailed(f"device {name!r}: its process did not get ready: {words}")
    if failed.reason == "out_of_memory":
        return OutOfMemory(
            f"device {name!r}: out of memory in step {step} ({words}); {_left(step, undone)}: plan "
            "with less memory for this device"
        )
    return StepFailed(f"device {name!r}: step {step} failed: {words}; {_left(step, undone)}")


def _left(step: int, undone: bool) -> str:
    """The state in which a failing step leaves the model."""
    if undone:
        return f"the model is as after step {max(step - 1, 0)}"
    return "the model may be updated in part, so load what was saved last"
