"""Workers in processes of this machine."""

from __future__ import annotations

import contextlib
import pickle
import selectors
import signal
import subprocess
from collections import deque
from collections.abc import Mapping
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from situate.errors import SituateError
from situate.evaluators.workers.messages import Failure, Message, Work, decode, encode
from situate.runtime.processes.launch import ChildProcesses
from situate.runtime.processes.signals import HeldSignals

PROGRAM = "import sys; from situate.evaluators.workers.worker import main; main(int(sys.argv[1]))"

ENDING_SECONDS = 5.0
"""Seconds for a process to end after it hung up."""

UNREAD_BYTES = 32_768
"""Most bytes sent to a busy worker, which reads them later. A socket buffers more, so sending never
blocks."""


class ProcessWorkers:
    """Workers of one thread each, in processes that end with this one, however it ends.

    Args:
        packed: their evaluator or function, see `Worker`.
    """

    def __init__(self, packed: bytes) -> None:
        self._packed = packed
        self._processes = ChildProcesses()
        self._running: dict[int, tuple[subprocess.Popen[bytes], Connection]] = {}
        self._tasks: dict[int, deque[bytes | None]] = {}
        # Connections are registered once: `multiprocessing.connection.wait` would do so every time.
        self._selector = selectors.DefaultSelector()

    def start(self, worker: int) -> None:
        """See `Workers`.

        Raises:
            SituateError: this machine cannot start another process.
        """
        try:
            process, connection = self._launch(worker)
        except OSError as error:
            raise SituateError(
                f"workers: number {worker + 1} cannot be started ({error.strerror}): ask for fewer"
            ) from None
        self._running[worker] = process, connection
        self._tasks[worker] = deque()
        self._selector.register(connection, selectors.EVENT_READ, worker)

    def _launch(self, worker: int) -> tuple[subprocess.Popen[bytes], Connection]:
        own_end, worker_end = Pipe()
        with worker_end:  # only the worker holds its end, so that its hang-up is noticed
            process = self._processes.start(
                PROGRAM,
                (str(worker_end.fileno()),),
                (worker_end.fileno(),),
                threads=1,
                name=f"worker {worker}",
            )
        return process, own_end

    def equip(self, worker: int) -> None:
        """See `Workers`."""
        self._send(worker, self._packed)

    def give(self, worker: int, task: Work) -> None:
        """See `Workers`."""
        message, tasks = encode(task), self._tasks[worker]
        if tasks and (len(message) > UNREAD_BYTES or tasks[-1] is not None):
            tasks.append(message)
            return
        # None marks a task that is sent already.
        tasks.append(None)
        self._send(worker, message)

    def _send(self, worker: int, message: bytes) -> None:
        with contextlib.suppress(OSError):  # noticed when it should answer
            self._running[worker][1].send_bytes(message)

    def wait(self, seconds: float | None) -> list[tuple[int, Message]]:
        """See `Workers`."""
        ready = [key.data for key, _ in self._selector.select(seconds)]
        return [(worker, self._receive(worker)) for worker in ready]

    def _receive(self, worker: int) -> Message:
        try:
            message: Message = decode(self._running[worker][1].recv_bytes())
        except (EOFError, OSError, pickle.UnpicklingError):
            failure = Failure(self._ending(worker))
            self.stop(worker)
            return failure
        self._send_next(worker)
        return message

    def _send_next(self, worker: int) -> None:
        """Send a task that was too large while the worker was busy."""
        tasks = self._tasks[worker]
        if tasks:  # none after a greeting
            tasks.popleft()
        if tasks and tasks[0] is not None:
            message, tasks[0] = tasks[0], None
            self._send(worker, message)

    def _ending(self, worker: int) -> str:
        try:
            status = self._running[worker][0].wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            return "hung up"
        if status < 0:
            return f"was ended by {signal.Signals(-status).name}"
        return f"ended with exit status {status}"

    def show(self, figures: Mapping[str, float]) -> None:
        """Do nothing: processes have no dashboard."""

    def stop(self, worker: int) -> None:
        """See `Workers`."""
        with HeldSignals():
            process, connection = self._running.pop(worker)
            del self._tasks[worker]
            self._processes.end_one(process)
            self._selector.unregister(connection)
            connection.close()

    def close(self) -> None:
        """See `Workers`."""
        with HeldSignals():
            self._processes.end()
            for _, connection in self._running.values():
                connection.close()
            self._running.clear()
            self._selector.close()
