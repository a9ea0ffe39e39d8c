"""Grid search for the settings of `tuned_brkga`: 648, as many as REGAL tried (A.10).

The paper names the settings that it varied, not the values: two parameters of the beta
distribution, and the numbers of chromosomes, elites, mutants and populations. A setting's score is
the mean, over all problems, of the per cent by which its value is above the best of any setting
there with the same decoder. No family of problems decides alone. All settings are tried
with one seed; the best of these and the default ones are tried again with other seeds, which
decide: the best of so many with one seed is a lucky one.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache
from itertools import product
from math import inf
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from benchmarks.lib.graphs import branching
from benchmarks.lib.record import RESULTS, Row, show, write
from benchmarks.lib.workers import add_workers, jobs
from situate.bench.families.regal import synthetic
from situate.bench.families.unequal import layered
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.evaluators.workers.jobs import Jobs
from situate.host.machine import usable_cpus
from situate.simulation.simulator import Decoder, Simulator
from situate.solvers.evolutionary.brkga import BRKGA, BrkgaSettings, evolution

VALUES: dict[str, tuple[Any, ...]] = {
    "alpha": (0.5, 1.0, 3.0),
    "beta": (1.0, 4.0, 30.0),
    "population": (50, 100, 200),
    "elites": (0.1, 0.2, 0.3),
    "mutants": (0.05, 0.1, 0.2, 0.3),
    "populations": (1, 2),
}

FINALISTS = 20
"""Settings that are tried again."""

TWO, FOUR = Cluster.identical(2), Cluster.identical(4)

PROBLEMS = {
    "er": lambda: Problem(synthetic("er", 45, 1), TWO),
    "ba": lambda: Problem(synthetic("ba", 45, 1), TWO),
    "ws": lambda: Problem(synthetic("ws", 40, 1), TWO),
    "sbm": lambda: Problem(synthetic("sbm", 45, 1), TWO),
    "ba, transfers that take time": lambda: Problem(synthetic("ba", 40, 2, 10.0), TWO),
    "sbm, transfers that take time, 4 devices": lambda: Problem(
        synthetic("sbm", 40, 2, 10.0), FOUR
    ),
    "layered, overlapped": lambda: Problem(layered(48, 1), Cluster.preset("k80-4")),
    "branching, blocking": lambda: Problem(
        branching(3, 4, 1), Cluster.preset("k80-4"), rules=RULES["regal"]
    ),
}
"""None of them is in another benchmark."""


def main(arguments: list[str] | None = None) -> None:
    """Breed with every setting on every problem, print and record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--evaluations", type=int, default=2500, help="a search; default: 2500")
    parser.add_argument("--seeds", type=int, default=5, help="of finalists; default: 5")
    add_workers(parser, usable_cpus(), "searches")
    options = parser.parse_args(arguments)
    with jobs(options, value, options.evaluations) as searches:
        tables = _tables(searches, options.seeds)
    write(RESULTS / "tune_brkga.json", tables, options=options)
    for title in tables:
        if title.endswith("finalists"):
            show(title, tables[title])


def _tables(searches: Jobs, seeds: int) -> dict[str, list[Row]]:
    """All settings, then the finalists, by decoder."""
    tables = dict[str, list[Row]]()
    for decoder in get_args(Decoder):
        default = replace(BRKGA["paper"], decoder=decoder)
        every = [replace(settings, decoder=decoder) for settings in grid()]
        scores = _above(_values(searches, every, [0])).mean(axis=1)
        tables[f"{decoder} decoder, all settings"] = [
            _row(s, x) for s, x in zip(every, scores, strict=True)
        ]
        first = np.argsort(scores, kind="stable")[:FINALISTS]
        finalists = [default, *(every[i] for i in first)]
        above = _above(_values(searches, finalists, range(1, seeds + 1)))
        tables[f"{decoder} decoder, finalists"] = [
            _row(finalists[i], above[i].mean())
            | {f"{name}, %": float(share) for name, share in zip(PROBLEMS, above[i], strict=True)}
            for i in np.argsort(above.mean(axis=1), kind="stable")
        ]
    return tables


def grid() -> list[BrkgaSettings]:
    """The 648 settings."""
    return [
        replace(BrkgaSettings(), **dict(zip(VALUES, chosen, strict=True)))
        for chosen in product(*VALUES.values())
    ]


def _values(
    searches: Jobs, settings: list[BrkgaSettings], seeds: Sequence[int]
) -> NDArray[np.float64]:
    """Mean values over seeds (settings, problems)."""
    columns = []
    for name in PROBLEMS:
        print(f"{name}: {len(settings)} settings", flush=True)
        calls = [(name, setting, seed) for setting in settings for seed in seeds]
        result = np.array(list(searches.map(calls)))
        columns.append(result.reshape(len(settings), len(seeds)).mean(axis=1))
    return np.column_stack(columns)


def value(evaluations: int, problem: str, settings: BrkgaSettings, seed: int) -> float:
    """The value of a search on one thread."""
    population = evolution(_simulator(problem), settings, goal="time", seed=seed)
    population.run(evaluations, inf, 1)
    return population.best()[1]


@cache
def _simulator(problem: str) -> Simulator:
    return Simulator(PROBLEMS[problem]())


def _above(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much values (settings, problems) are above the best of each problem, in per cent."""
    return np.asarray(100 * (values / values.min(axis=0) - 1))


def _row(settings: BrkgaSettings, score: float) -> dict[str, Any]:
    chosen = {name: value for name, value in asdict(settings).items() if name in VALUES}
    return chosen | {"above the best, %": float(score)}


if __name__ == "__main__":
    main()
