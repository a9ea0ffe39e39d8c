"""Samples a second by workers over one process: measurements that sleep, and simulated ones."""

from __future__ import annotations

import argparse
import time
from statistics import median

import numpy as np
from numpy.typing import NDArray

import situate
from benchmarks.lib.busy import Busy
from benchmarks.lib.record import Row, Target, record
from situate.evaluators.measurements import Evaluator
from situate.evaluators.simulated import SimulatedMachine
from situate.evaluators.workers.machine import WorkerMachine

SPIN_SECONDS, SPIN_WANTED = 0.005, 1.9
SLEEP_SECONDS = 0.1
SLEEP_WANTED = {12: 0.97, 160: 0.90}
SIMULATED_WANTED = 0.9


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=20, help="sleeping samples a worker")
    options = parser.parse_args(arguments)
    computing = _computing(options.repeats)
    sleeping = [_sleeping(workers, options.rounds) for workers in SLEEP_WANTED]
    simulated = _simulated(options.repeats)
    tables = {"computing": [computing], "sleeping": sleeping, "simulated": [simulated]}
    targets = [
        _target("samples a second, 5 ms of work each, 2 workers over 1", SPIN_WANTED, computing),
        *(
            _target(
                f"samples a second, 100 ms each, {row['workers']} workers over the ideal",
                SLEEP_WANTED[row["workers"]],
                row,
            )
            for row in sleeping
        ),
        _target(
            "simulated samples a second, 2 workers over 2 threads", SIMULATED_WANTED, simulated
        ),
    ]
    record("worker_speed", tables, targets, options=options)


def _target(what: str, wanted: float, row: Row) -> Target:
    return Target(what, f"{wanted:g}", f"{row['ratio']:.3f}", row["ratio"] >= wanted)


def _computing(repeats: int) -> Row:
    one, two = (_rate(Busy(SPIN_SECONDS, True), workers, 400, repeats) for workers in (1, 2))
    return {"sample_s": SPIN_SECONDS, "one_a_second": one, "two_a_second": two, "ratio": two / one}


def _sleeping(workers: int, rounds: int) -> Row:
    result = _rate(Busy(SLEEP_SECONDS, False), workers, workers * rounds, 1)
    ideal = workers / SLEEP_SECONDS
    return {"workers": workers, "a_second": result, "ideal": ideal, "ratio": result / ideal}


def _simulated(repeats: int) -> Row:
    problem = situate.Problem(situate.zoo.load("resnet50"), situate.Cluster.preset("k80-2"))
    threads, single = (SimulatedMachine(problem, threads=count) for count in (2, 1))
    placements = _placements(problem.n, problem.d, 2400)
    with WorkerMachine(single, 2, here=threads) as workers:
        rates: dict[str, list[float]] = {"threads": [], "workers": []}
        for _ in range(repeats):
            rates["threads"].append(_timed(threads, placements, 12))
            rates["workers"].append(_timed(workers, placements, 12))
    by = {name: median(result) for name, result in rates.items()}
    return {"batch": 12, **by, "ratio": by["workers"] / by["threads"]}


def _rate(evaluator: Evaluator, workers: int, samples: int, repeats: int) -> float:
    """Samples a second, the median, once every worker has measured."""
    placements = _placements(4, 2, samples)
    with WorkerMachine(evaluator, workers) as machine:
        while len(machine.counts.completed) < workers:
            machine.measure(placements[: 4 * workers], 0)
        return median(_timed(machine, placements, samples) for _ in range(repeats))


def _timed(machine: Evaluator, placements: NDArray[np.int32], batch: int) -> float:
    begin = time.perf_counter()
    for first in range(0, len(placements), batch):
        machine.measure(placements[first : first + batch], first)
    return len(placements) / (time.perf_counter() - begin)


def _placements(ops: int, devices: int, count: int) -> NDArray[np.int32]:
    return np.random.default_rng(0).integers(0, devices, (count, ops)).astype(np.int32)


if __name__ == "__main__":
    main()
