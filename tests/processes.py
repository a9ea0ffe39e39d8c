"""What of some processes still runs."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path


def left_of(processes: Iterable[int]) -> list[int]:
    """Those that still run after a minute: who was killed needs a moment to go."""
    found, deadline = list(processes), time.monotonic() + 60.0
    while (found := list(filter(runs, found))) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def runs(process: int) -> bool:
    """Whether a process does; one that ended and was not yet waited for does not."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
