"""The processes that measure: one a device, as in a placed step, each told alone what to run."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Collection, Iterable, Sequence
from multiprocessing import Pipe, reduction
from multiprocessing.connection import Connection, wait
from typing import Any

from situate.errors import SituateError
from situate.host.machine import usable_cpus
from situate.runtime.device import Ran
from situate.runtime.hardware import RealDevice
from situate.runtime.processes.launch import Started
from situate.runtime.processes.worker import Failed, Hello, Run, main

START = "import sys; from situate.profiling.crew import serve; serve(int(sys.argv[1]))"
"""What a process executes: it loads PyTorch while its parent still captures the model."""


def serve(connection: int) -> None:
    """Load PyTorch, take the descriptor of the common memory, then be a worker.

    Args:
        connection: descriptor of a socket.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import torch  # noqa: F401 - so that it is there when work comes

    with Connection(os.dup(connection)) as parent:
        try:
            block = reduction.recv_handle(parent)
        except (EOFError, OSError, RuntimeError):
            return
    main(connection, block)


class Crew:
    """A process for each of several devices; a context manager that ends them.

    Each loads PyTorch as it starts. As many start at once as leave a core to this process, which
    may load it too; the others when `start_others` is called.

    Attributes:
        beside: seconds that the last step took beside what its devices did.
    """

    def __init__(self, devices: Sequence[RealDevice]) -> None:
        self._names = [device.name for device in devices]
        self._others = list(devices)
        self._connections: list[Connection] = []
        self._started = Started()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._step = 0
        self.beside = 0.0
        try:
            for _ in range(max(1, usable_cpus() - 1)):
                self._start_next()
        except BaseException:
            self._started.end()
            raise

    def start_others(self) -> None:
        """Start those that are not started yet."""
        while self._others:
            self._start_next()

    def _start_next(self) -> None:
        if self._others:
            self._start(self._others.pop(0))

    def _start(self, device: RealDevice) -> None:
        ours, theirs = Pipe()
        process = self._started.start(
            START,
            (str(theirs.fileno()),),
            (theirs.fileno(),),
            threads=device.threads,
            name=device.name,
        )
        theirs.close()
        self._connections.append(ours)
        self._processes.append(process)

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self._started.end()
        for connection in self._connections:
            connection.close()

    @property
    def pids(self) -> list[int]:
        """The processes, by device."""
        return [process.pid for process in self._processes]

    def assign(self, hellos: Sequence[Hello], block: int) -> None:
        """Tell every process what it can run.

        Args:
            block: descriptor of the common memory.

        Raises:
            SituateError: a process ended, or cannot run it; all have ended then.
        """
        self.start_others()
        for i, hello in enumerate(hellos):
            with contextlib.suppress(OSError):
                reduction.send_handle(self._connections[i], block, self._processes[i].pid)
            self._say(i, hello)
        self._answers(range(len(hellos)))

    def run(self, members: Iterable[int], timed: bool, memory: bool = False) -> dict[int, Ran]:
        """One step of these devices at once, by device.

        Raises:
            SituateError: the step failed on one of them; all have ended then, since the others may
                wait for it.
        """
        self._step += 1
        chosen = list(members)
        began = time.perf_counter()
        for i in chosen:
            self._say(i, Run(self._step, timed, None, memory))
        found: dict[int, Ran] = self._answers(chosen)
        self.beside = time.perf_counter() - began - _together(found.values())
        return found

    def _say(self, i: int, what: Hello | Run) -> None:
        """Whether it still listens shows when it should answer."""
        with contextlib.suppress(OSError):
            self._connections[i].send(what)

    def _answers(self, members: Sequence[int]) -> dict[int, Any]:
        """One answer of each, whoever is first; where one fails, all are ended."""
        of = {self._connections[i]: i for i in members}
        found: dict[int, Any] = {}
        try:
            while missing := [connection for connection, i in of.items() if i not in found]:
                ready = wait(missing)
                found |= {of[c]: self._answer(of[c]) for c in missing if c in ready}
        except SituateError:
            self._started.end()
            raise
        return {i: found[i] for i in members}

    def _answer(self, i: int) -> object:
        try:
            said: object = self._connections[i].recv()
        except (EOFError, OSError):
            raise self._ended(i) from None
        if isinstance(said, Failed):
            raise SituateError(f"device {self._names[i]!r}: {said.reason}: {said.text}")
        return said

    def _ended(self, i: int) -> SituateError:
        code = self._processes[i].wait()
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return SituateError(f"device {self._names[i]!r}: its process ended ({how})")


def _together(ran: Collection[Ran]) -> float:
    """Seconds from when the first device began to when the last one ended."""
    return max(r.end for r in ran) - min(r.start for r in ran)
