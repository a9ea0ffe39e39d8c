"""BRKGA on REGAL's synthetic recipe: the mean gap to the bound by settings and evaluations."""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from math import inf

import numpy as np

from benchmarks.lib.record import Row, record
from situate.bench.families.regal import MODELS, synthetic
from situate.bounds.lower_bound import lower_bound
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.host.machine import usable_cpus
from situate.simulation.simulator import Simulator
from situate.solvers.evolutionary.brkga import BRKGA, TUNED_BRKGA, BrkgaSettings, evolution

SETTINGS = {
    f"{method} {name}": settings
    for method, of in (("brkga", BRKGA), ("tuned_brkga", TUNED_BRKGA))
    for name, settings in of.items()
}
EVALUATIONS = (1000, 5000, 50_000)

BANDWIDTH = 10.0
"""Units that a transfer moves in a unit of time, where transfers take time."""


def main(arguments: list[str] | None = None) -> None:
    """Breed on every graph, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=5, help="of each model; default: 5")
    options = parser.parse_args(arguments)
    tables = {
        f"gap to the bound, %, transfers that take {time}": list(_rows(options.graphs, bandwidth))
        for time, bandwidth in (("no time", None), ("time", BANDWIDTH))
    }
    record("brkga_quality", tables, options=options)


def _rows(graphs: int, bandwidth: float | None) -> Iterator[Row]:
    """A row a setting: means over the graphs."""
    problems = [
        Problem(
            synthetic(model, random.Random(seed).randint(50, 200), seed, bandwidth),
            Cluster.identical(2),
        )
        for model in MODELS
        for seed in range(graphs)
    ]
    for name, settings in SETTINGS.items():
        gaps = np.array([_gaps(problem, settings) for problem in problems])
        for which, of in (("mean", gaps.mean(axis=0)), ("most", gaps.max(axis=0))):
            shares = zip(EVALUATIONS, of, strict=True)
            yield {"settings": name, "": which} | {f"{n}": float(share) for n, share in shares}


def _gaps(problem: Problem, settings: BrkgaSettings) -> list[float]:
    """The gap after so many evaluations, in per cent."""
    population = evolution(Simulator(problem), settings, goal="time", seed=0)
    bound = lower_bound(problem)
    result = []
    for evaluations in EVALUATIONS:
        population.run(evaluations - population.evaluations, inf, usable_cpus())
        result.append(100 * (population.best()[1] / bound - 1))
    return result


if __name__ == "__main__":
    main()
