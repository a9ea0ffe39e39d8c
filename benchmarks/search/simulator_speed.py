"""Evaluations a second of both decoders, and their memory, on random decisions."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.lib import child
from benchmarks.lib.graphs import TWO_DEVICES
from benchmarks.lib.record import Row, Target, record
from situate.bench.families.regal import synthetic
from situate.bench.families.unequal import layered
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.host.machine import usable_cpus
from situate.simulation.simulator import Decoder, Simulator

WANTED = {150: 20_000, 2_000: 2_000, 10_000: 300, 80_000: 20}
"""Evaluations a second with the eager decoder, one thread, by number of ops."""

REGAL_WANTED = {150: 150_000, 2_000: 10_000, 10_000: 1_500, 80_000: 100}
"""Makespans a second with the serial decoder on a synthetic graph of REGAL's under its rules. The
graphs are planned without a limit on memory, so nobody asks for peaks."""

EAGER_AT_MOST = 2.0
"""Times the seconds of the serial decoder there."""

BYTES_WANTED = 1000
"""An op, beside the graph."""

EAGER_TRIM = {"MALLOC_TRIM_THRESHOLD_": "0", "MALLOC_MMAP_THRESHOLD_": "16384"}
"""glibc gives freed memory back at once, so that new memory is seen as new."""

DECODERS: tuple[Decoder, ...] = ("eager", "serial")
DECISIONS = 1_000_000
"""Ops that one timed batch decides on, about."""


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    speed = list(_speed(_layered, options.seed, options.repeats))
    regal = list(_speed(_regal, options.seed, options.repeats, peaks=False))
    with_peaks = list(_speed(_regal, options.seed, options.repeats))
    threads = list(_threads(options.seed, options.repeats))
    memory = [_memory(ops, options.seed) for ops in WANTED]
    targets = [*_speed_targets(speed), *_regal_targets(regal), *_memory_targets(memory)]
    tables = {
        "one thread, two devices, overlapped transfers, random decisions": speed,
        "one thread, two devices, REGAL's rules, random decisions, makespans": regal,
        "one thread, two devices, REGAL's rules, random decisions, with peaks": with_peaks,
        "over threads, wall time": threads,
        "memory beside the graph": memory,
    }
    record("simulator_speed", tables, targets, options=options)


def _layered(ops: int, seed: int) -> Problem:
    return Problem(layered(ops, seed), TWO_DEVICES)


def _regal(ops: int, seed: int) -> Problem:
    """About so many ops; transfers take no time."""
    return Problem(synthetic("ba", ops, seed), Cluster.identical(2))


def _speed(
    make: Callable[[int, int], Problem], seed: int, repeats: int, peaks: bool = True
) -> Iterator[Row]:
    for ops in WANTED:
        problem = make(ops, seed)
        for decoder in DECODERS:
            evaluate, count = _batch(problem, seed, decoder, threads=1, peaks=peaks)
            times = _times(evaluate, repeats, time.thread_time)
            yield {
                "ops": ops,
                "decoder": decoder,
                "evaluations_a_second_median": count / statistics.median(times),
                "evaluations_a_second_best": count / min(times),
                "ns_an_op": statistics.median(times) / count / ops * 1e9,
                "repeats": repeats,
                "evaluations_a_repeat": count,
            }


def _threads(seed: int, repeats: int, ops: int = 2_000) -> Iterator[Row]:
    alone = 0.0
    for threads in sorted({1, 2, usable_cpus()}):
        evaluate, count = _batch(_layered(ops, seed), seed, "eager", threads)
        median = statistics.median(_times(evaluate, repeats, time.perf_counter))
        alone = alone or median
        yield {
            "ops": ops,
            "threads": threads,
            "evaluations_a_second_median": count / median,
            "times_one_thread": alone / median,
        }


def _batch(
    problem: Problem, seed: int, decoder: Decoder, threads: int, peaks: bool = True
) -> tuple[Callable[[], object], int]:
    """A function that evaluates one batch, and the number of decisions in it."""
    simulator = Simulator(problem)
    count = max(4, DECISIONS // problem.n)
    draw = np.random.default_rng(seed)
    placements = draw.integers(0, 2, (count, problem.n)).astype(np.int32)
    priorities = draw.random((count, problem.n), np.float32)
    evaluate: Callable[..., object] = simulator.evaluate if peaks else simulator.makespans
    return lambda: evaluate(placements, priorities, decoder=decoder, threads=threads), count


def _times(evaluate: Callable[[], object], repeats: int, clock: Callable[[], float]) -> list[float]:
    """Seconds of each repeat, after one that warms up."""
    evaluate()
    times = []
    for _ in range(repeats):
        begin = clock()
        evaluate()
        times.append(clock() - begin)
    return times


def _memory(ops: int, seed: int) -> Row:
    process = child.run(
        child.module("benchmarks.search.simulator_memory", str(ops), str(seed)), EAGER_TRIM
    )
    if process.status:
        raise RuntimeError(process.errors)
    kept_bytes, peak = json.loads(process.output)
    return {"ops": ops, "bytes_an_op": kept_bytes / ops, "bytes_an_op_at_the_peak": peak / ops}


def _speed_targets(rows: list[Row]) -> Iterator[Target]:
    for row in rows:
        if row["decoder"] == "eager":
            yield _at_least(WANTED[row["ops"]], row, "eager")


def _regal_targets(rows: list[Row]) -> Iterator[Target]:
    for eager, serial in zip(rows[::2], rows[1::2], strict=True):
        yield _at_least(REGAL_WANTED[serial["ops"]], serial, "REGAL's rules, serial")
        ratio = serial["evaluations_a_second_median"] / eager["evaluations_a_second_median"]
        yield Target(
            f"REGAL's rules, eager, {eager['ops']:,} ops",
            f"at most {EAGER_AT_MOST} times the serial decoder's seconds",
            f"{ratio:.2f}",
            ratio <= EAGER_AT_MOST,
        )


def _at_least(wanted: int, row: Row, what: str) -> Target:
    measured = row["evaluations_a_second_median"]
    return Target(
        f"{what}, {row['ops']:,} ops",
        f"at least {wanted:,} evaluations a second",
        f"{measured:,.0f}",
        measured >= wanted,
    )


def _memory_targets(rows: list[Row]) -> Iterator[Target]:
    largest = rows[-1]
    yield Target(
        f"memory beside the graph, {largest['ops']:,} ops",
        f"less than {BYTES_WANTED:,} bytes an op, at the peak",
        f"{largest['bytes_an_op_at_the_peak']:,.0f}",
        largest["bytes_an_op_at_the_peak"] < BYTES_WANTED,
    )


if __name__ == "__main__":
    main()
