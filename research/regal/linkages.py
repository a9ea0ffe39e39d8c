"""REGAL with a learnt linkage against constants, graph by graph.

Every row has the same BRKGA, budget and proposals of priorities. It differs in the edges whose ends
are bred together, and in the distributions of affinities: none and uniform ones; one probability
for all edges, the best of `CONSTANTS` on the graphs of `valid`; as a trained network proposes, by
its scores of edges and ops or of edges alone; and as it proposes for features in a random order. A
network has learnt to tell edges and ops apart only as far as it is better than all of these. A
value is the mean over seeds.

    python -m research.regal.linkages SET/time --name real_time
    python -m research.regal.linkages LARGER --name larger_four --devices 4
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from benchmarks.lib.record import Row, show, write
from benchmarks.lib.workers import add_workers, jobs
from research import RESULTS
from research.regal.data import file_hash, graph_files, graphs_hash
from research.regal.evaluation import interval
from situate import RULES, Cluster, Problem, solve
from situate.data.problem import Objective
from situate.evaluators.workers.jobs import Jobs
from situate.host.machine import usable_cpus
from situate.readers import read
from situate.simulation.simulator import Simulator
from situate.solvers.budget import Budget
from situate.solvers.evolutionary.brkga import BRKGA, evolution
from situate.solvers.evolutionary.regal.linkage import (
    ConstantLinkage,
    LinkageModel,
    Linker,
    Scores,
    raw_features,
)
from situate.solvers.evolutionary.regal.linkage import read as read_linkage
from situate.solvers.evolutionary.regal.proposers import ConstantProposer, LinkageProposer
from situate.solvers.evolutionary.regal.regal import WEIGHTS, breed_with
from situate.solvers.evolutionary.regal.settings import CONSTANTS as OF_KEYS
from situate.solvers.evolutionary.regal.training.instances import value
from situate.solvers.search import Search

NONE, BEST, LEARNT, SHUFFLED = "none", "the best constant", "learnt", "learnt, features shuffled"
EDGES = "learnt, edges alone"
AUTO = "auto, as many evaluations"
PLAIN = "BRKGA, serial"

BASELINES = {"plain": PLAIN, "none": NONE, "constant": BEST, "shuffled": SHUFFLED}
"""Rows that others are compared with, by their names in columns."""

CONSTANTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
"""Probabilities that are the same at all edges."""

Values = Mapping[str, NDArray[np.float64]]
"""(graphs,) by label."""


def main(arguments: list[str] | None = None) -> None:
    """Plan, print and record."""
    options = _options(arguments)
    weights = options.weights or WEIGHTS / f"{options.objective}-linkage.safetensors"
    valid, test = (_files(options.folder / part, options) for part in ("valid", "test"))
    with jobs(options, outcome) as pool:
        constants = {f"{together}": ConstantLinkage(together) for together in CONSTANTS}
        on_valid = _values(pool, valid, {NONE: None, **constants}, options)
        best = min(constants, key=lambda label: float((on_valid[label] / on_valid[NONE]).mean()))
        values = _values(pool, test, _linkers(constants[best], read_linkage(weights)), options)
    tables = {
        "linkages": list(_rows(values)),
        "constants": list(_constants(on_valid)),
        "data": [{"graphs": len(test), "sha256": graphs_hash(test), "best_constant": best}],
        "weights": [{"weights": weights.name, "sha256": file_hash(weights)}],
    }
    for title in ("linkages", "constants"):
        show(f"regal_linkages_{options.name}: {title}", tables[title])
    options.weights = weights.name
    write(RESULTS / f"regal_linkages_{options.name}.json", tables, options=options)


def _linkers(constant: Linker, model: LinkageModel) -> Mapping[str, Linker | None]:
    return {
        NONE: None,
        BEST: constant,
        LEARNT: model,
        EDGES: EdgesAlone(model),
        SHUFFLED: Shuffled(model),
    }


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="with folders `valid` and `test` of graph files")
    parser.add_argument("--name", required=True, help="the record is regal_linkages_NAME.json")
    parser.add_argument("--objective", choices=get_args(Objective), default="time")
    parser.add_argument("--weights", type=Path, help="default: those that come with situate")
    parser.add_argument("--devices", type=int, default=2, help="equal ones")
    parser.add_argument("--evaluations", type=int, default=5000)
    parser.add_argument("--least", type=int, default=0, help="ops of a graph")
    parser.add_argument("--most", type=int, default=10**6, help="ops of a graph")
    parser.add_argument("--graphs", type=int, help="of each folder; default: all")
    parser.add_argument("--seeds", type=int, default=1, help="0, 1, ...; default: 1")
    add_workers(parser, usable_cpus(), "graphs")
    return parser.parse_args(arguments)


def _files(folder: Path, options: argparse.Namespace) -> list[Path]:
    size = range(options.least, options.most + 1)
    files = [path for path in graph_files(folder) if len(read(path).ops) in size]
    return files[: options.graphs]


@dataclass(frozen=True)
class EdgesAlone:
    """The linkage of a network whose scores of ops are not read."""

    model: LinkageModel

    def scores(self, problem: Problem) -> Scores:
        """See `Linker`."""
        return Scores(self.model.scores(problem).together)


@dataclass(frozen=True)
class Shuffled:
    """The linkage of a network that reads the features of ops in a random order."""

    model: LinkageModel

    def scores(self, problem: Problem) -> Scores:
        """See `Linker`."""
        nodes, edges, source, target = raw_features(problem)
        order = np.random.default_rng(0).permutation(len(nodes))
        return self.model.of_features(nodes[order], np.zeros_like(edges), source, target)


def _values(
    pool: Jobs,
    files: Sequence[Path],
    linkers: Mapping[str, Linker | None],
    options: argparse.Namespace,
) -> Values:
    tasks = [
        Task(path, options.objective, options.devices, options.evaluations, options.seeds, linkers)
        for path in files
    ]
    values = list(pool.map((task,) for task in tasks))
    return {label: np.array([of[label] for of in values]) for label in values[0]}


@dataclass(frozen=True)
class Task:
    """A graph that is planned with each linkage."""

    path: Path
    objective: Objective
    devices: int
    evaluations: int
    seeds: int
    linkers: Mapping[str, Linker | None]

    def run(self) -> dict[str, float]:
        """Mean values over seeds by label, and those of BRKGA and `auto`."""
        cluster = Cluster.identical(self.devices)
        problem = Problem(read(self.path), cluster, self.objective, RULES["regal"])
        values = [self._values(problem, seed) for seed in range(self.seeds)]
        return {label: float(np.mean([of[label] for of in values])) for label in values[0]}

    def _values(self, problem: Problem, seed: int) -> dict[str, float]:
        values = {
            label: self._value(problem, linker, seed) for label, linker in self.linkers.items()
        }
        auto = solve(problem, "auto", evaluations=self.evaluations, seed=seed, threads=1)
        return values | {PLAIN: self._plain(problem, seed), AUTO: auto.value}

    def _plain(self, problem: Problem, seed: int) -> float:
        """The value that the paper compares with."""
        simulator = Simulator(problem)
        population = evolution(simulator, BRKGA["paper"], goal=self.objective, seed=seed)
        population.run(self.evaluations, inf, 1)
        return value(population)

    def _value(self, problem: Problem, linker: Linker | None, seed: int) -> float:
        keys = OF_KEYS["tuned", self.objective]
        proposer = ConstantProposer(keys) if linker is None else LinkageProposer(linker, keys)
        search = Search(problem, budget=Budget(None, self.evaluations), seed=seed, threads=1)
        breed_with(search, proposer)
        return search.result("regal").value


def outcome(task: Task) -> dict[str, float]:
    """Run a task on a worker."""
    return task.run()


def _rows(values: Values) -> Iterator[Row]:
    """How much shorter, or smaller, plans are than without a linkage and with the best constant."""
    for label, of in values.items():
        row: Row = {"linkage": label, "graphs": len(of)}
        for name, reference in BASELINES.items():
            gain = 100 * (1 - of / values[reference])
            row |= {f"over_{name}_%": float(gain.mean()), f"over_{name}_interval_%": interval(gain)}
        yield row | {"no_worse_%": float(100 * (of <= values[NONE] * (1 + 1e-9)).mean())}


def _constants(values: Values) -> Iterator[Row]:
    for label, of in values.items():
        gain = 100 * (1 - of / values[NONE])
        yield {"together": label, "over_none_%": float(gain.mean()), "interval_%": interval(gain)}


if __name__ == "__main__":
    main()
