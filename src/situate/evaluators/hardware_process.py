"""The process of one device, as it is seen from the process that measures."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from multiprocessing import Pipe, reduction
from typing import Any

from situate.runtime.processes.launch import Started
from situate.runtime.processes.team import GRACE, OutOfMemory, StepFailed
from situate.runtime.processes.worker import Failed, Hello

START_DEVICE = (
    "import sys; from situate.evaluators.hardware_device import main; "
    "main(int(sys.argv[1]), *sys.argv[2:])"
)
"""What the process executes."""

KILLED = -signal.SIGKILL
"""Exit status of a process that was killed, also by Linux for want of memory."""


class Ended(StepFailed):
    """A device whose process ended.

    Attributes:
        status: of its exit, below zero for a signal; None if it only hung up.
    """

    def __init__(self, name: str, status: int | None) -> None:
        how = "hung up" if status is None else f"ended with exit status {status}"
        if status is not None and status < 0:
            how = f"ended by {signal.Signals(-status).name}"
        super().__init__(f"device {name!r}: its process {how}")
        self.status = status


class DeviceProcess:
    """Starts the process, in a process group of its own.

    Args:
        name: of the device.
        threads: that its kernels may use.
        modules: that it imports.
        started: whoever ends it.
    """

    def __init__(self, name: str, threads: int, modules: Sequence[str], started: Started) -> None:
        self.name = name
        self.connection, theirs = Pipe()
        self._process = started.start(
            START_DEVICE,
            (str(theirs.fileno()), *modules),
            (theirs.fileno(),),
            threads=threads,
            name=name,
            quiet=True,
        )
        theirs.close()

    def assign(self, hello: Hello, block: int) -> None:
        """Tell it what it can run, in the memory of this descriptor."""
        with contextlib.suppress(OSError):
            reduction.send_handle(self.connection, block, self._process.pid)
        self.say(hello)

    def say(self, what: object) -> None:
        """Send it something; whether it still listens shows when it should answer."""
        with contextlib.suppress(OSError):
            self.connection.send(what)

    def answer(self) -> Any:
        """What it says next.

        Raises:
            OutOfMemory, StepFailed: it says that it failed.
            Ended: it says nothing more.
        """
        try:
            said = self.connection.recv()
        except (EOFError, OSError):
            raise Ended(self.name, self._status()) from None
        if isinstance(said, Failed):
            words = (said.text.strip() or said.reason).splitlines()[0]
            kind = OutOfMemory if said.reason == "out_of_memory" else StepFailed
            raise kind(f"device {self.name!r}: {words}")
        return said

    def _status(self) -> int | None:
        try:
            return self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """End it and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
