"""A study whose workers are killed again and again, beside one that nobody disturbs."""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep

import numpy as np
from numpy.typing import NDArray

import situate
from benchmarks.lib.record import Row, Target, record
from situate.evaluators.simulated import SimulatedMachine
from situate.solvers.learned.learner import Learning

NOISE = 0.1


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
def killing(folder: Path, every: float) -> Iterator[list[int]]:
    """Kill the process that began a sample last, of those that have measured one, every so many
    seconds within the block; gives the list of those that were."""
    killed: list[int] = []
    over = threading.Event()

    def kill() -> None:
        while not over.wait(every):
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


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="of the study")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two kills")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--samples", type=int, default=600)
    options = parser.parse_args(arguments)
    row = _row(options)
    same = row["same"]
    target = Target("as a study that nobody disturbs", "yes", same, same == "yes")
    record("worker_faults", {"studies": [row]}, [target], options=options)


def _row(options: argparse.Namespace) -> Row:
    problem = situate.Problem(situate.zoo.load("resnet50"), situate.Cluster.preset("k80-2"))
    with tempfile.TemporaryDirectory() as folder:
        begun, study = Path(folder, "begun"), Path(folder, "study")
        begun.mkdir()
        seconds = options.seconds * options.workers / options.samples
        alone = SimulatedMachine(problem, NOISE, 0)
        slow = Sleeping(problem, NOISE, 0, begun, seconds)
        whole = _learn(problem, options.samples, evaluator=alone)
        with killing(begun, options.every) as killed:
            disturbed = _learn(
                problem, options.samples, evaluator=slow, workers=options.workers, study=study
            )
        held = len(situate.Study.read(study))
    same = np.array_equal(whole.samples, disturbed.samples)
    same &= np.array_equal(whole.placement, disturbed.placement)
    return {
        "workers": options.workers,
        "samples": held,
        "killed": len(killed),
        "seconds": disturbed.seconds,
        "same": "yes" if same and held == options.samples else "no",
    }


def _learn(problem: situate.Problem, samples: int, **learning: object) -> situate.Result:
    options = Learning(**learning)  # type: ignore[arg-type]
    return situate.solve(problem, "post", evaluations=samples, learning=options)


if __name__ == "__main__":
    main()
