"""The best constant for BRKGA on some sets of graphs, by successive halving.

A constant is the same category of every choice at every op. The first rung tries a coarse grid of
levels on a few graphs. Each further rung keeps a quarter of the constants, adds those next to the
best, and has four times as many graphs; the last one alone has all evaluations. A constant's score
is its mean improvement over plain BRKGA, serial, with as many evaluations: the mean over sets of
means over graphs.

    python -m research.regal.constants SYNTHETIC/train --objective time
    python -m research.regal.constants REAL/memory/train --objective memory
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import inf
from pathlib import Path
from typing import get_args

import numpy as np

from benchmarks.lib.record import Row, show, write
from research import RESULTS
from research.regal.compared import BY_HAND, DEVICES
from research.regal.data import graph_files, graphs_hash
from research.regal.evaluation import Values, interval
from situate import RULES, Cluster, Problem, _core
from situate.readers import read
from situate.simulation.simulator import Simulator
from situate.solvers.evolutionary.brkga import BRKGA, evolution
from situate.solvers.evolutionary.regal.proposals import guided, proposals
from situate.solvers.evolutionary.regal.settings import CONSTANTS, Constant
from situate.solvers.evolutionary.regal.training.instances import value
from situate.solvers.learned.learner import Settings

COARSE = (1, 2, 4, 8, 16)
"""Levels of the first rung."""

SURVIVORS, MORE = 4, 4
"""One of so many constants stays in the next rung, which has so many times the graphs."""

FINALISTS = 10
"""Constants of the last rung, besides the one set by hand."""

RUNGS = 4

PARENTS = 5
"""The best constants of a rung, whose neighbours join the next."""

SHORT = 5
"""Rungs before the last have one of so many evaluations."""


def main(arguments: list[str] | None = None) -> None:
    """Search, print and record."""
    options = _options(arguments)
    begin = CONSTANTS[options.settings, options.objective]
    sets = [_Set(folder, begin, options) for folder in options.folders]
    rungs = list[Row]()
    results = _search(begin, sets, options, rungs)
    tables = {
        "constants": list(_rows(results, sets, begin, options)),
        "rungs": rungs,
        "data": [
            {
                "set": data_set.name,
                "graphs": len(data_set.paths),
                "sha256": graphs_hash(sorted(data_set.paths)),
            }
            for data_set in sets
        ],
    }
    record = f"regal_constants_{options.settings}_{options.objective}"
    show(record, tables["constants"])
    options.folders = [data_set.name for data_set in sets]
    write(RESULTS / f"{record}.json", tables, options=options)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="SET", help="folder of graphs")
    parser.add_argument("--objective", choices=("time", "memory"), default="time")
    parser.add_argument("--settings", choices=get_args(Settings), default="tuned")
    parser.add_argument("--evaluations", type=int, default=5000, help="of the last rung")
    parser.add_argument("--graphs", type=int, default=128, help="of each set; default: 128")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


class _Set:
    """Some graphs of a folder in a random order, and the improvements of constants on them.

    Attributes:
        name: the last two parts of the folder's path.
        paths: of the graphs.
    """

    def __init__(self, folder: Path, begin: Constant, options: argparse.Namespace) -> None:
        files = graph_files(folder)
        self.name = "/".join(folder.parts[-2:])
        count = min(options.graphs, len(files))
        self.paths = random.Random(options.seed).sample(files, count)
        self._begin, self._options = begin, options
        self._simulators = dict[Path, Simulator]()
        self._plain = dict[tuple[Path, int], float]()

    def improvements(self, levels: Sequence[int], graphs: int, evaluations: int) -> Values:
        """(graphs,) per cent over plain BRKGA."""
        return np.array(
            [self._improvement(levels, path, evaluations) for path in self.paths[:graphs]]
        )

    def _improvement(self, levels: Sequence[int], path: Path, evaluations: int) -> float:
        simulator, seed = self._simulator(path), self._options.seed
        if (path, evaluations) not in self._plain:
            plain = evolution(simulator, BRKGA["paper"], goal=self._options.objective, seed=seed)
            self._plain[path, evaluations] = _best(plain, evaluations)
        constant = replace(self._begin, levels=tuple(levels))
        problem, keys = simulator.problem, _core.search.key_count(simulator.core)
        actions, breeding = constant.actions(problem.n), constant.breeding
        guide = proposals(problem, actions, constant.proposed, keys, breeding.bias)
        reached = _best(guided(simulator, breeding, guide, seed), evaluations)
        return 100 * (1 - reached / self._plain[path, evaluations])

    def _simulator(self, path: Path) -> Simulator:
        if path not in self._simulators:
            cluster, rules = Cluster.identical(DEVICES), RULES["regal"]
            problem = Problem(read(path), cluster, self._options.objective, rules)
            self._simulators[path] = Simulator(problem)
        return self._simulators[path]


def _best(population: _core.search.Brkga, evaluations: int) -> float:
    population.run(evaluations, inf, 1)
    return value(population)


Improvements = Mapping[tuple[int, ...], list[Values]]
"""By levels of a constant, the improvements on each set."""


def _search(
    begin: Constant, sets: Sequence[_Set], options: argparse.Namespace, rungs: list[Row]
) -> Improvements:
    """The improvements of the constants of the last rung; describes each rung in `rungs`."""
    k, choices = begin.proposed.scheduling, len(begin.levels)
    levels = range(1, k + 1) if choices <= 2 else [level for level in COARSE if level <= k]
    constants = set(product(levels, repeat=choices))
    for rung in range(RUNGS):
        last = rung == RUNGS - 1
        graphs = max(1, options.graphs // MORE ** (RUNGS - 1 - rung))
        evaluations = options.evaluations if last else max(1, options.evaluations // SHORT)
        results = {
            constant: [of.improvements(constant, graphs, evaluations) for of in sets]
            for constant in sorted(constants)
        }
        row = {"constants": len(constants), "graphs": graphs, "evaluations": evaluations}
        rungs.append(row | {"best_%": max(map(_score, results.values()))})
        print(rungs[-1], flush=True)
        if last:
            break
        order = sorted(results, key=lambda constant: -_score(results[constant]))
        if rung == RUNGS - 2:
            constants = {*order[:FINALISTS], *_by_hand(options)}
        else:
            constants = set(order[: max(FINALISTS, len(order) // SURVIVORS)])
            constants.update(
                constant for parent in order[:PARENTS] for constant in neighbours(parent, k)
            )
    return results


def _by_hand(options: argparse.Namespace) -> list[tuple[int, ...]]:
    return [BY_HAND] if options.settings == "tuned" else []


def neighbours(levels: Sequence[int], most: int) -> Iterator[tuple[int, ...]]:
    """The constants that differ from one by a level of one choice."""
    for i, level in enumerate(levels):
        for near in (level - 1, level + 1):
            if 1 <= near <= most:
                yield (*levels[:i], near, *levels[i + 1 :])


def _score(of_sets: Sequence[Values]) -> float:
    """The mean over sets of means over graphs."""
    return float(np.mean([of.mean() for of in of_sets]))


def _rows(
    results: Improvements, sets: Sequence[_Set], begin: Constant, options: argparse.Namespace
) -> Iterator[Row]:
    """A row a constant of the last rung, the best first."""
    order = sorted(results, key=lambda constant: -_score(results[constant]))
    best = np.concatenate(results[order[0]])
    by_hand = _by_hand(options)
    for constant in order:
        behind = best - np.concatenate(results[constant])
        yield {
            "constant": str(replace(begin, levels=constant)),
            "by_hand": constant in by_hand,
            "improvement_%": _score(results[constant]),
            "behind_the_best_%": float(behind.mean()),
            "its_interval_%": interval(behind),
            **{
                f"{of.name}, %": float(r.mean())
                for of, r in zip(sets, results[constant], strict=True)
            },
        }


if __name__ == "__main__":
    main()
