"""`auto` on islands: the step at equal time by one and by more workers, beside one process without
workers. Each search has one thread a worker."""

from __future__ import annotations

import argparse
from statistics import mean

import situate
from benchmarks.lib.record import Row, Target, record

NETWORKS = ("inception_v3", "nmt4", "gpt2")
CLUSTER = "k80-4"

WANTED = 1.0
"""Step by the most workers over that by one, in the mean, at most."""


def main(arguments: list[str] | None = None) -> None:
    """Search, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS))
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds; default: 20")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="default: 1 2")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args(arguments)
    rows = [row(network, options) for network in options.networks]
    record("islands", {"seconds of a step": rows}, [_target(rows, options)], options=options)


def row(network: str, options: argparse.Namespace) -> Row:
    """The mean seconds of a step over the seeds."""
    problem = situate.Problem(situate.zoo.load(network), situate.Cluster.preset(CLUSTER))
    result = {"no_workers_s": _step(problem, None, options)}
    result |= {f"workers_{count}_s": _step(problem, count, options) for count in options.workers}
    return {"network": network, "ops": problem.n, **result}


def _step(problem: situate.Problem, workers: int | None, options: argparse.Namespace) -> float:
    return mean(
        situate.solve(
            problem,
            time_limit=options.time_limit,
            seed=seed,
            threads=1,
            learning=situate.Learning(workers=workers),
        ).value
        for seed in range(options.seeds)
    )


def _target(rows: list[Row], options: argparse.Namespace) -> Target:
    few, many = (f"workers_{count}_s" for count in (options.workers[0], options.workers[-1]))
    ratio = mean(row[many] / row[few] for row in rows)
    what = f"step by {options.workers[-1]} workers over that by {options.workers[0]}, equal time"
    return Target(what, f"at most {WANTED:g}", f"{ratio:.4f}", ratio <= WANTED)


if __name__ == "__main__":
    main()
