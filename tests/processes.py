"""Processes of a test that still run."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from situate.runtime.processes import launch


def left_of(processes: Iterable[int]) -> list[int]:
    """Those that still run after a minute: who was killed needs a moment to go."""
    result, deadline = list(processes), time.monotonic() + 60.0
    while (result := list(filter(runs, result))) and time.monotonic() < deadline:
        time.sleep(0.01)
    return result


def runs(process: int) -> bool:
    """True if a process runs; one that ended and was not yet waited for does not."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def interrupt_starts(patch: pytest.MonkeyPatch, times: int = 1) -> list[int]:
    """Let Ctrl-C come so often between a process's start and when it is known, and each time one
    is waited for; the numbers of the processes that were started."""
    started: list[int] = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            started.append(self.pid)
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)

        def wait(self, timeout: float | None = None) -> int:
            signal.raise_signal(signal.SIGINT)
            return super().wait(timeout)

    patch.setattr(launch.subprocess, "Popen", Interrupted)
    return started


def gone(process: int) -> bool:
    """True if nothing is left of a process of this one, nor a zombie."""
    return not Path(f"/proc/{process}").exists()
