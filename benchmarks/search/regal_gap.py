"""Gap of `auto` to the lower bound on REGAL's synthetic graphs, by seconds of search."""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Iterator

import situate
from benchmarks.lib.record import Row, Target, record
from situate.bench.families.regal import MODELS, NODES, synthetic

TIME_LIMITS = (0.1, 1.0)
WANTED = {0.1: 0.05, 1.0: 0.02}
"""Mean gap in per cent where transfers take no time, by seconds of search."""

BANDWIDTHS = {"no time": None, "as long as their tensor has units": 1.0}


def main(arguments: list[str] | None = None) -> None:
    """Search, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=5, help="of each of four models")
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    situate.solve(
        situate.Problem(synthetic("er", 50, 0), situate.Cluster.identical(2)), time_limit=0.1
    )  # what is loaded late
    runs = [row for taking in BANDWIDTHS for row in _runs(taking, options)]
    means = list(_means(runs))
    record("regal_gap", {"means": means, "runs": runs}, list(_targets(means)), options=options)


def _runs(taking: str, options: argparse.Namespace) -> Iterator[Row]:
    cluster = situate.Cluster.identical(options.devices)
    for model in MODELS:
        for graph in range(options.graphs):
            nodes = random.Random(graph).randint(*NODES)
            made = synthetic(model, nodes, options.seed * 1000 + graph, BANDWIDTHS[taking])
            problem = situate.Problem(made, cluster)
            for limit in TIME_LIMITS:
                result = situate.solve(problem, time_limit=limit, seed=options.seed)
                yield {
                    "transfers take": taking,
                    "graph": made.name,
                    "ops": problem.n,
                    "seconds": limit,
                    "value": result.value,
                    "gap_%": 100 * result.gap,
                    "bound": result.bounded_by,
                    "evaluations": result.evaluations,
                }


def _means(runs: list[Row]) -> Iterator[Row]:
    for taking in BANDWIDTHS:
        for limit in TIME_LIMITS:
            gaps = [
                row["gap_%"]
                for row in runs
                if (row["transfers take"], row["seconds"]) == (taking, limit)
            ]
            yield {
                "transfers take": taking,
                "seconds": limit,
                "mean_gap_%": statistics.mean(gaps),
                "median_gap_%": statistics.median(gaps),
                "largest_gap_%": max(gaps),
                "graphs": len(gaps),
            }


def _targets(means: list[Row]) -> Iterator[Target]:
    for row in means[: len(TIME_LIMITS)]:
        wanted, measured = WANTED[row["seconds"]], row["mean_gap_%"]
        yield Target(
            f"transfers that take no time, {row['seconds']} s: mean gap",
            f"at most {wanted} %",
            f"{measured:.3f} %",
            measured <= wanted,
        )


if __name__ == "__main__":
    main()
