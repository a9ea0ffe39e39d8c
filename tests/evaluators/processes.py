"""What of some processes still runs."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path


def left_of(processes: Iterable[int]) -> list[int]:
    """Those that still run after a while: who was killed needs a moment to go."""
    found = list(processes)
    for _ in range(100):
        if not (found := [process for process in found if _runs(process)]):
            break
        time.sleep(0.1)
    return found


def _runs(process: int) -> bool:
    """Whether a process does; one that ended and was not yet waited for does not."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
