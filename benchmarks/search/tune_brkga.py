"""Grid search for the settings of `tuned_brkga`: 648, as many as REGAL tried (A.10).

The paper names what it varied, not the values: two parameters of the beta distribution, and the
numbers of chromosomes, elites, mutants and populations. A setting's score is the mean, over all
problems, of how far its value is above the best that any setting found there with the same decoder,
in per cent. No family of problems decides alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import product
from math import inf
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from benchmarks.lib.graphs import branching, layered
from benchmarks.lib.record import Row, record
from benchmarks.lib.regal import synthetic
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.host.machine import usable_cpus
from situate.simulation.simulator import Decoder, Simulator
from situate.solvers.evolutionary.brkga import evolution
from situate.solvers.evolutionary.settings import BRKGA, BrkgaSettings

VALUES = {
    "alpha": (0.5, 1.0, 3.0),
    "beta": (1.0, 4.0, 30.0),
    "population": (50, 100, 200),
    "elites": (0.1, 0.2, 0.3),
    "mutants": (0.05, 0.1, 0.2, 0.3),
    "populations": (1, 2),
}

BEST_SHOWN = 10
"""Settings a table lists, beside the defaults."""

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
        branching(3, 4, 1), Cluster.preset("k80-4"), rules="regal"
    ),
}
"""None of them is in another benchmark."""


def main(arguments: list[str] | None = None) -> None:
    """Breed with every setting on every problem, print and record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--evaluations", type=int, default=2500, help="a search; default: 2500")
    parser.add_argument("--seeds", type=int, default=1, help="0, 1, ...; default: 1")
    options = parser.parse_args(arguments)
    tables = dict[str, list[Row]]()
    for decoder in get_args(Decoder):
        settings = [BRKGA["paper"], *grid()]
        values = np.column_stack(
            [np.array(list(_values(name, decoder, settings, options))) for name in PROBLEMS]
        )
        tables[f"{decoder} decoder"] = _best(settings, values)
    record("tune_brkga", tables, options=options)


def grid() -> list[BrkgaSettings]:
    """The 648 settings, with the paper's decoder."""
    return [
        BrkgaSettings(**dict(zip(VALUES, chosen, strict=True)))
        for chosen in product(*VALUES.values())
    ]


def _values(
    name: str, decoder: Decoder, settings: list[BrkgaSettings], options: argparse.Namespace
) -> Iterator[float]:
    """The mean value of each setting's seeds on one problem."""
    simulator = Simulator(PROBLEMS[name]())
    print(f"{decoder}: {name}, {simulator.problem.n} ops", flush=True)
    for each in settings:
        yield float(
            np.mean(
                [
                    _value(simulator, each, decoder, seed, options.evaluations)
                    for seed in range(options.seeds)
                ]
            )
        )


def _value(
    simulator: Simulator, settings: BrkgaSettings, decoder: Decoder, seed: int, evaluations: int
) -> float:
    chosen = replace(settings, decoder=decoder)
    population = evolution(simulator, chosen, goal="time", seed=seed)
    population.run(evaluations, inf, usable_cpus())
    return population.best()[1]


def _best(settings: list[BrkgaSettings], values: NDArray[np.float64]) -> list[Row]:
    """The best settings, and the first of all, by their scores.

    Args:
        values: (settings, problems).
    """
    above = 100 * (values / values.min(axis=0) - 1)
    ranked = np.argsort(above.mean(axis=1), kind="stable")
    rank = {int(setting): place + 1 for place, setting in enumerate(ranked)}
    return [
        {"rank": rank[i]}
        | {name: value for name, value in asdict(settings[i]).items() if name in VALUES}
        | {"above the best, %": float(above[i].mean())}
        | {f"{name}, %": float(share) for name, share in zip(PROBLEMS, above[i], strict=True)}
        for i in [*map(int, ranked[:BEST_SHOWN]), 0]
    ]


if __name__ == "__main__":
    main()
