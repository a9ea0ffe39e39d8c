"""A pool of worker processes, one a device."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe, reduction
from multiprocessing.connection import Connection, wait
from typing import Any

from situate.runtime.processes.launch import ChildProcesses
from situate.runtime.processes.messages import (
    Assignment,
    FailureReport,
    StepFailed,
    WorkerEnded,
    device_failure,
)
from situate.runtime.processes.signals import HeldSignals

STEP_WORKER = (
    "import sys; from situate.runtime.processes.worker import main; main(int(sys.argv[1]))"
)
"""The program of a worker that runs one placed step."""

START_LIMIT_SECONDS = 120.0
"""Seconds for a worker to start and to take over its share."""

GRACE_SECONDS = 5.0
"""Seconds for a worker to abort a step, and for its process to end after it hung up."""


@dataclass(frozen=True, eq=False)
class Worker:
    """The process of one device, and the connection to it."""

    name: str
    process: subprocess.Popen[bytes]
    connection: Connection

    def send(self, message: object) -> None:
        """Send a message. A closed connection shows later, when the worker should answer."""
        with contextlib.suppress(OSError):
            self.connection.send(message)

    def assign(self, assignment: Assignment, block: int) -> None:
        """Send a share of a placed step, and the descriptor of its memory."""
        with contextlib.suppress(OSError):
            # The descriptor travels beside the bytes of the socket, as ancillary data.
            reduction.send_handle(self.connection, block, self.process.pid)
        self.send(assignment)

    def receive(self) -> Any:
        """The next answer.

        Raises:
            WorkerEnded: there is none.
        """
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            raise WorkerEnded(self.name, self._status()) from None

    def _status(self) -> int | None:
        try:
            return self.process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """Kill the process and all that it started; a process that waits for its answer notices."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


class WorkerPool:
    """Workers that end together: on request, when the pool is collected, with Python, or with this
    process.

    A failure is raised and ends nothing: the other workers may need a message first.

    Args:
        program: Python code of a worker; its first argument is the descriptor of its connection.
        quiet: discard the workers' output.

    Attributes:
        workers: in order of their start.
    """

    def __init__(self, program: str, *, quiet: bool = False) -> None:
        self._program, self._quiet = program, quiet
        self._processes = ChildProcesses()
        self._awaited: list[Worker] = []
        self.workers: list[Worker] = []

    def start(self, name: str, threads: int | None, arguments: Sequence[str] = ()) -> Worker:
        """Start one more worker.

        Args:
            name: of its device.
            threads: of its kernels from the start; None for as many as there are cores.
            arguments: of its program, after the descriptor.
        """
        ours, theirs = Pipe()
        process = self._processes.start(
            self._program,
            (str(theirs.fileno()), *arguments),
            (theirs.fileno(),),
            threads=threads,
            name=name,
            quiet=self._quiet,
        )
        # The worker alone must hold its end, or nobody would hear that it hung up.
        theirs.close()
        worker = Worker(name, process, ours)
        self.workers.append(worker)
        return worker

    def assign(
        self, workers: Sequence[Worker], assignments: Sequence[Assignment], block: int
    ) -> None:
        """Send each worker its share of a placed step, and the memory they share.

        All must have been started: a share may exceed a socket's buffer until its worker reads.
        """
        for worker, assignment in zip(workers, assignments, strict=True):
            worker.assign(assignment, block)

    def answers(
        self,
        workers: Sequence[Worker],
        failure: Callable[[str, FailureReport], StepFailed] = device_failure,
        limit: float | None = None,
    ) -> list[Any]:
        """One answer of each worker, in their order.

        Args:
            failure: makes the error of a device, from its name and its report.
            limit: seconds to wait for the next answer.

        Raises:
            StepFailed: a device failed, its process ended, or none answered in time.
        """
        answer_of: dict[Worker, Any] = {}
        self._awaited = list(workers)
        while self._awaited:
            ready = wait([worker.connection for worker in self._awaited], limit)
            if not ready:
                late = self._awaited[0].name
                raise StepFailed(f"device {late!r}: its process did not answer within {limit:g} s")
            for worker in [w for w in self._awaited if w.connection in ready]:
                # Before the answer is read: a worker that fails here is not waited for again.
                self._awaited.remove(worker)
                answer_of[worker] = answer = worker.receive()
                if isinstance(answer, FailureReport):
                    raise failure(worker.name, answer)
        return [answer_of[worker] for worker in workers]

    def drain(self) -> None:
        """Wait for missing answers after a failure, `GRACE_SECONDS` for each."""
        with contextlib.suppress(EOFError, OSError):
            for worker in self._awaited:
                if not worker.connection.poll(GRACE_SECONDS):
                    return
                worker.connection.recv()

    def kill(self) -> None:
        """Kill all workers, from any thread; a thread that waits for their answers notices."""
        for worker in list(self.workers):
            worker.kill()

    def end(self) -> None:
        """End all workers, with all that they started. Signals wait."""
        with HeldSignals():
            self._processes.end()
            for worker in self.workers:
                worker.connection.close()
            self.workers, self._awaited = [], []
