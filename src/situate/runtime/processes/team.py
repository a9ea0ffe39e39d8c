"""The devices of a placed step: in this process where one works alone, else a process each."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Protocol

from situate import _core
from situate.errors import SituateError
from situate.runtime.device import Ran
from situate.runtime.processes.allocator import keep_freed_memory, return_freed_memory
from situate.runtime.processes.channels import ABORT
from situate.runtime.processes.commit import Commit
from situate.runtime.processes.launch import Started
from situate.runtime.processes.threads import threads
from situate.runtime.processes.worker import Failed, Hello, Run, Store, Work, failed
from situate.runtime.programs.seeds import kept_generator

if TYPE_CHECKING:
    import torch

GRACE = 5.0
"""Seconds that workers have to give a step up before they are killed."""

START_WORKER = (
    "import sys; from situate.runtime.processes.worker import main; main(*map(int, sys.argv[1:]))"
)
"""What a worker executes."""

START = 120.0
"""Seconds that a worker has to start."""


class StepFailed(SituateError):
    """A step that no device has ended; the model is as after the step before.

    Attributes:
        outcome: one of `situate.evaluators.measurements.OUTCOMES`.
    """

    outcome = "crash"


class OutOfMemory(StepFailed):
    """A device ran out of memory."""

    outcome = "out_of_memory"


class Team(Protocol):
    """Devices that run a step together."""

    def run(self, order: Run) -> list[Ran]:
        """What each device says of a step.

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


class Here:
    """The one device of a step, in this process, which keeps freed memory until this is closed.

    Args:
        hello, raw: as for a process.
        count: threads that its kernels may use.
        commit: of the step.
    """

    def __init__(
        self, name: str, hello: Hello, raw: torch.Tensor, count: int | None, commit: Commit
    ) -> None:
        self._name, self._threads, self._commit = name, count, commit
        self._kept = kept_generator if hello.share.seeds else contextlib.nullcontext
        self._work = Work(hello, raw, commit.begin)

    def run(self, order: Run) -> list[Ran]:
        keep_freed_memory()  # another step that was closed may have let it go
        try:
            with threads(self._threads), self._kept():
                return [self._work.ran(order)]
        except Exception as error:
            undone = order.keep and not self._commit.begun
            raise failure(self._name, failed(error), order.step, undone) from error

    def store(self, order: Store) -> None:
        if isinstance(said := self._work.run(order), Failed):
            raise failure(self._name, said, order.step, order.keep)

    def close(self) -> None:
        self._work.close()
        return_freed_memory()


@dataclass(frozen=True)
class Worker:
    """A process and what it is reached by."""

    name: str
    process: subprocess.Popen[bytes]
    connection: Connection


class Processes:
    """A process for every device.

    Args:
        names: of the devices.
        hellos: what each is told first.
        block: descriptor of the common memory.
        flags: in it.
    """

    def __init__(
        self, names: Sequence[str], hellos: Sequence[Hello], block: int, flags: _core.Flags
    ) -> None:
        self._flags = flags
        self._started = Started()
        self._workers: list[Worker] = []
        self._silent: list[Worker] = []
        try:
            for name, hello in zip(names, hellos, strict=True):
                self._workers.append(self._start(name, hello.threads, block))
            for worker, hello in zip(self._workers, hellos, strict=True):
                self._say(worker, hello)
            self._answers(0, START, undone=True)
        except BaseException:
            self.close()
            raise

    def run(self, order: Run) -> list[Ran]:
        return self._told(order)

    def store(self, order: Store) -> None:
        self._told(order)

    def _told(self, order: Run | Store) -> list[Ran]:
        for worker in self._workers:
            self._say(worker, order)
        try:
            return self._answers(order.step, None, order.keep)
        except BaseException:
            self._give_up(order.step)
            raise

    def _say(self, worker: Worker, what: Hello | Run | Store) -> None:
        """Whether it still listens shows when it should answer."""
        with contextlib.suppress(OSError):
            worker.connection.send(what)

    def close(self) -> None:
        self._started.end()
        for worker in self._workers:
            worker.connection.close()
        self._workers = []

    def _start(self, name: str, threads: int, block: int) -> Worker:
        ours, theirs = multiprocessing.Pipe()
        process = self._started.start(
            START_WORKER,
            (str(theirs.fileno()), str(block)),
            (theirs.fileno(), block),
            threads=threads,
            name=name,
        )
        theirs.close()
        return Worker(name, process, ours)

    def _answers(self, step: int, limit: float | None, undone: bool) -> list[Ran]:
        """One answer of every worker, in their order; see `failure`."""
        found: dict[Connection, Ran] = {}
        self._silent = list(self._workers)
        while self._silent:
            ready = wait([worker.connection for worker in self._silent], limit)
            if not ready:
                raise StepFailed(f"device {self._silent[0].name!r}: its worker did not start")
            for worker in [w for w in self._silent if w.connection in ready]:
                self._silent.remove(worker)
                found[worker.connection] = _answer(worker, step, undone)
        return [found[worker.connection] for worker in self._workers]

    def _give_up(self, step: int) -> None:
        """Let the others stop waiting; whoever does not answer is killed, and so are all."""
        self._flags.post(ABORT, step)
        for worker in self._silent:
            try:
                while worker.connection.poll(GRACE):
                    said = worker.connection.recv()
                    if isinstance(said, (Failed, Ran)):
                        break
                else:
                    break
            except (EOFError, OSError):
                break
        self.close()


def _answer(worker: Worker, step: int, undone: bool) -> Ran:
    try:
        said = worker.connection.recv()
    except (EOFError, ConnectionResetError):
        code = worker.process.wait()
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        when = f"in step {step}" if step else "before it was ready"
        raise StepFailed(
            f"device {worker.name!r}: its worker ended {when} ({how}); {_left(step, undone)}, and "
            "the next step starts new workers"
        ) from None
    if isinstance(said, Failed):
        raise failure(worker.name, said, step, undone)
    ran: Ran = said
    return ran


def failure(name: str, failed: Failed, step: int, undone: bool) -> StepFailed:
    """What a device's failure is to the user, who finds the model as before the step where it is
    undone."""
    words = failed.text.strip().splitlines()[0] if failed.text.strip() else failed.reason
    if step == 0:
        kind = OutOfMemory if failed.reason == "out_of_memory" else StepFailed
        return kind(f"device {name!r}: its worker did not start: {words}")
    if failed.reason == "out_of_memory":
        return OutOfMemory(
            f"device {name!r}: out of memory in step {step} ({words}); {_left(step, undone)}: plan "
            "with less memory for this device"
        )
    return StepFailed(f"device {name!r}: step {step} failed: {words}; {_left(step, undone)}")


def _left(step: int, undone: bool) -> str:
    """How a failing step leaves the model."""
    if undone:
        return f"the model is as after step {max(step - 1, 0)}"
    return "the model may be updated in part, so load what was saved last"
