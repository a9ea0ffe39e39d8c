"""The overhead of a placed step where the plan puts everything on one device: its time over that of
the same step in plain PyTorch, autograd and torch.optim, with as many threads.

Both are called in turn in one process; a figure is the median of the rounds' ratios of wall time,
beside it of CPU time. The target holds for a step that leaves the model as it was where it fails;
`without_kept` is one that does not (`keep=False`).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import torch

import situate
from benchmarks.lib.record import Row, Target, record
from benchmarks.runtime.runtime_cases import Case, in_turn, one_cpu

MOST = {
    "cifar_cnn": 0.03,
    "resnet50": 0.03,
    "inception_v3": 0.03,
    "gpt2": 0.03,
    "rnnlm": 0.10,
    "nmt2": 0.10,
}
"""Fractions of the plain step's time; the last two are unrolled into thousands of small ops."""

SIZES = {"gpt2": (1, 512)}
"""Batch and length, where they are not those of `benchmarks.runtime.runtime_models`."""


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", nargs="+", choices=MOST, default=list(MOST))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seconds", type=float, default=40.0, help="of each row, about")
    options = parser.parse_args(arguments)
    rows = []
    for network in options.networks:
        case = Case(network, SIZES.get(network, ()))
        rows += [_row(case, threads, options.seconds) for threads in options.threads]
    record("overhead", {"one device": rows}, list(_targets(rows)), options=options)


def _row(case: Case, threads: int, seconds: float) -> Row:
    torch.set_num_threads(threads)
    cluster = one_cpu(threads)
    schedule = situate.solve(case.problem(cluster), "single").schedule
    plain = case.unplaced()
    kept, unkept = (case.placed(schedule, cluster, keep=keep) for keep in (True, False))
    times = in_turn(
        [plain, lambda: kept(*case.inputs), lambda: unkept(*case.inputs)],
        seconds,
    )
    print(f"{case.name}, threads: {threads}, rounds: {times.rounds}", flush=True)
    low, high = np.quantile(times.ratios(1, 0) - 1, (0.25, 0.75))
    return {
        "network": case.name,
        "threads": threads,
        "rounds": times.rounds,
        "plain_seconds": times.seconds(0),
        "placed_seconds": times.seconds(1),
        "overhead": times.ratio(1, 0) - 1,
        "overhead_low": float(low),
        "overhead_high": float(high),
        "overhead_cpu": times.cpu_ratio(1, 0) - 1,
        "overhead_without_kept": times.ratio(2, 0) - 1,
        "overhead_cpu_without_kept": times.cpu_ratio(2, 0) - 1,
    }


def _targets(rows: list[Row]) -> Iterator[Target]:
    for row in rows:
        most, measured = MOST[row["network"]], float(row["overhead"])
        yield Target(
            f"{row['network']}, threads: {row['threads']}",
            f"at most {most:.0%} above plain PyTorch",
            f"{measured:+.1%} (half of the rounds between {row['overhead_low']:+.1%} and "
            f"{row['overhead_high']:+.1%})",
            measured <= most,
        )


if __name__ == "__main__":
    main()
