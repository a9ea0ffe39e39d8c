"""Stages in processes of their own, each guarded by a clock.

A stage that fails, hangs or crashes costs no other stage its figures. Stages may prepare side by
side; one at a time has the device to measure on. This module needs Python alone, so that it runs
where nothing is installed yet.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

LEAST_SECONDS = 5.0
"""A stage does not begin with less time than this before the deadline."""

SECONDS_TO_ABORT, SECONDS_TO_END = 2.0, 5.0
"""A process that is late has so long to write where it is, and a killed one to be gone."""

SECONDS_TO_LOOK = 0.2
"""A signal to the command is handled so soon."""

LONGEST_ERROR = 2000
"""Characters of an error text."""

ASK, GO = b"?", b"!"
"""A stage asks for the device, and hears that it has it."""

Verdict = Literal["done", "failed", "hung", "crashed", "left out", "not reached"]


@dataclass(frozen=True)
class Stage:
    """A part of the benchmark, in a process of its own.

    Attributes:
        name: of its entry in the report.
        module: holds the function `measure`, which the process calls.
        arguments: for that function.
        prepare: seconds until it asks for the device, or ends, at most.
        measure: seconds from when it has the device until it ends, at most.
    """

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    prepare: float = 60.0
    measure: float = 60.0


@dataclass(frozen=True)
class Outcome:
    """The end of a stage.

    Attributes:
        seconds: of its process, those in which it waited for the device left out.
        figures: all that it noted before it ended.
    """

    verdict: Verdict
    seconds: float = 0.0
    error: str = ""
    figures: dict[str, Any] = field(default_factory=dict)


class Late(Exception):
    """A stage did not keep its time."""


class Guard:
    """Runs stages, each in a process that ends at its own deadline or at the one of all.

    Args:
        seconds: until no stage runs any more.
        options: of `benchmarks.gpu.process`, the same for all stages.
        environment: of the processes.
    """

    def __init__(
        self, seconds: float, options: Sequence[str] = (), environment: dict[str, str] | None = None
    ) -> None:
        self._deadline = time.monotonic() + seconds
        self._options, self._environment = tuple(options), environment
        self._device = threading.Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline of all, at least 0."""
        return max(0.0, self._deadline - time.monotonic())

    def end(self) -> None:
        """End all processes; no stage begins any more."""
        self._deadline = 0.0
        for process in list(self._processes):
            _kill(process)

    def run(self, stage: Stage) -> Outcome:
        """Run a stage until it ends, or until its time is over."""
        if self.seconds_left < LEAST_SECONDS:
            return Outcome("left out", error="no time was left to run it")
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with (folder / "log").open("wb") as log, self._process(stage, folder, log) as child:
                process, channel = child
                began, waited, late = time.monotonic(), 0.0, ""
                try:
                    waited = self._watch(stage, process, channel)
                except Late as error:
                    late = f"{error}; "
                    _abort(process)
            return _outcome(folder, process.returncode, late, time.monotonic() - began - waited)

    @contextlib.contextmanager
    def _process(
        self, stage: Stage, folder: Path, log: Any
    ) -> Iterator[tuple[subprocess.Popen[bytes], socket.socket]]:
        """The stage's process and the channel to it; nothing is left of either."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            process = subprocess.Popen(
                self._command(stage, folder, theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
            theirs.close()
            self._processes.add(process)
            try:
                yield process, ours
            finally:
                _kill(process)
                self._processes.discard(process)

    def _command(self, stage: Stage, folder: Path, channel: int) -> list[str]:
        head = [sys.executable, "-X", "faulthandler", "-m", "benchmarks.gpu.process"]
        own = ["--figures", str(folder / "figures"), "--channel", str(channel)]
        return [*head, *own, *self._options, stage.module, *stage.arguments]

    def _watch(
        self, stage: Stage, process: subprocess.Popen[bytes], channel: socket.socket
    ) -> float:
        """Seconds that the stage waited for the device, once it has ended.

        Raises:
            Late: it did not end in time.
        """
        waited = 0.0
        with contextlib.ExitStack() as turn:
            if self._asks(channel, stage.prepare):
                began = time.monotonic()
                if not self._device.acquire(timeout=self.seconds_left):
                    raise Late("no time was left when the device was free")
                turn.callback(self._device.release)
                waited = time.monotonic() - began
                with contextlib.suppress(OSError):
                    channel.sendall(GO)
            self._await_end(process, stage.measure)
        return waited

    def _asks(self, channel: socket.socket, seconds: float) -> bool:
        """True when the stage asks for the device, False when it ends without."""
        seconds = min(seconds, self.seconds_left)
        channel.settimeout(max(seconds, 0.001))
        try:
            return channel.recv(1) == ASK
        except TimeoutError:
            raise Late(f"not ready after {seconds:.0f} s") from None
        except OSError:
            return False

    def _await_end(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        seconds = min(seconds, self.seconds_left)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Late(f"no end after {seconds:.0f} s") from None


def _abort(process: subprocess.Popen[bytes]) -> None:
    """Have a late process write to its log where each of its threads is."""
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        process.send_signal(signal.SIGABRT)
        process.wait(SECONDS_TO_ABORT)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process with all of its session; one that waits inside a driver may stay."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(SECONDS_TO_END)


def _outcome(folder: Path, status: int | None, late: str, seconds: float) -> Outcome:
    figures, error = _figures(folder / "figures")
    log = (folder / "log").read_text("utf-8", "replace")
    if late:
        return Outcome("hung", seconds, trim(late + log), figures)
    if error:
        return Outcome("failed", seconds, trim(error), figures)
    if status:
        return Outcome("crashed", seconds, trim(f"{_ending(status)}; {log}"), figures)
    return Outcome("done", seconds, "", figures)


def _figures(path: Path) -> tuple[dict[str, Any], str]:
    """The figures that a stage noted, and the error that ended it."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}, ""
    return content["figures"], content["error"]


def _ending(status: int) -> str:
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended with status {status}"


def trim(text: str, most: int = LONGEST_ERROR) -> str:
    """The text, without its middle if it is longer than that."""
    text = text.strip()
    head = most // 4
    return text if len(text) <= most else f"{text[:head]} [...] {text[head - most :]}"


def run_all(
    guard: Guard, stages: Sequence[Stage], jobs: int, on_outcome: Callable[[str, Outcome], None]
) -> None:
    """Run stages, at most so many side by side, and hand on each outcome as soon as it is there."""
    waiting, lock = list(stages), threading.Lock()

    def work() -> None:
        while True:
            with lock:
                if not waiting:
                    return
                stage = waiting.pop(0)
            on_outcome(stage.name, guard.run(stage))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(jobs, len(stages)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        # A signal that comes just before a wait without an end is handled only after it.
        while thread.is_alive():
            thread.join(SECONDS_TO_LOOK)
