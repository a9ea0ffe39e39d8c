"""Evaluations a second of both decoders, and their memory, on random decisions."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.lib import child
from benchmarks.lib.graphs import TWO_DEVICES, layered
from benchmarks.lib.record import Row, Target, record
from situate.data.problem import Problem
from situate.host.machine import usable_cpus
from situate.simulation.simulator import Decoder, Simulator

WANTED = {150: 20_000, 2_000: 2_000, 10_000: 300, 80_000: 20}
"""Evaluations a second with the eager decoder, one thread, by number of ops."""

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
    speed = list(_speed(options.seed, options.repeats))
    threads = list(_threads(options.seed, options.repeats))
    memory = [_memory(ops, options.seed) for ops in WANTED]
    targets = [*_speed_targets(speed), *_memory_targets(memory)]
    tables = {
        "one thread, two devices, overlapped transfers, random decisions": speed,
        "over threads, wall time": threads,
        "memory beside the graph": memory,
    }
    record("simulator_speed", tables, targets, options=options)


def _speed(seed: int, repeats: int) -> Iterator[Row]:
    for ops in WANTED:
        for decoder in DECODERS:
            evaluate, count = _batch(ops, seed, decoder, threads=1)
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
        evaluate, count = _batch(ops, seed, "eager", threads)
        median = statistics.median(_times(evaluate, repeats, time.perf_counter))
        alone = alone or median
        yield {
            "ops": ops,
            "threads": threads,
            "evaluations_a_second_median": count / median,
            "times_one_thread": alone / median,
        }


def _batch(ops: int, seed: int, decoder: Decoder, threads: int) -> tuple[Callable[[], object], int]:
    """A function that evaluates one batch, and the number of decisions in it."""
    simulator = Simulator(Problem(layered(ops, seed), TWO_DEVICES))
    count = max(4, DECISIONS // ops)
    draw = np.random.default_rng(seed)
    placements = draw.integers(0, 2, (count, ops)).astype(np.int32)
    priorities = draw.random((count, ops), np.float32)
    return (
        lambda: simulator.evaluate(placements, priorities, decoder=decoder, threads=threads)
    ), count


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
    done = child.run(
        child.module("benchmarks.search.simulator_memory", str(ops), str(seed)), EAGER_TRIM
    )
    if done.status:
        raise RuntimeError(done.errors)
    held, peak = json.loads(done.output)
    return {"ops": ops, "bytes_an_op": held / ops, "bytes_an_op_at_the_peak": peak / ops}


def _speed_targets(rows: list[Row]) -> Iterator[Target]:
    for row in rows:
        if row["decoder"] == "eager":
            measured, wanted = row["evaluations_a_second_median"], WANTED[row["ops"]]
            yield Target(
                f"eager, {row['ops']:,} ops",
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
