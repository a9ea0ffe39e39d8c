"""Workers that are killed while they measure."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from time import sleep

import numpy as np
from numpy.typing import NDArray

import situate
from situate.evaluators.simulated import SimulatedMachine


class Sleeping(SimulatedMachine):
    """Simulated measurements that take their time; each leaves a byte in a file named after its
    process."""

    at_once = 1

    def __init__(
        self, problem: situate.Problem, noise: float, seed: int, folder: Path, seconds: float
    ) -> None:
        super().__init__(problem, noise, seed, threads=1)
        self._folder, self._seconds = folder, seconds

    def measure(self, placements: NDArray[np.int32], first: int) -> situate.Measurements:
        """See `Evaluator`."""
        with open(self._folder / str(os.getpid()), "a") as begun:
            begun.write(".")
        sleep(self._seconds)
        return super().measure(placements, first)


@contextmanager
def killing(folder: Path, every: float, most: float = inf) -> Iterator[list[int]]:
    """Kill the process that began a sample last, of those that have measured one, every so many
    seconds within the block, and so often at most; gives the list of those that were."""
    killed: list[int] = []
    over = threading.Event()

    def kill() -> None:
        while len(killed) < most and not over.wait(every):
            measuring = [file for file in folder.iterdir() if file.stat().st_size > 1]
            begun = sorted(measuring, key=lambda file: file.stat().st_mtime_ns)
            for last in begun[-1:]:
                last.unlink()
                with suppress(ProcessLookupError):
                    os.kill(int(last.name), signal.SIGKILL)
                    killed.append(int(last.name))

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield killed
    finally:
        over.set()
        killer.join()
