"""REGAL's synthetic set (A.1.4): graphs of four random models on which a longer search pays.

Writes folders `train`, `valid` and `test` of CostGraphDef files, and goes on where it stopped. A
graph is kept if 10,000 evaluations of BRKGA bring at least 18 % over 1,000. The files depend on the
seed alone, whatever `--workers` make them and whenever they are interrupted.
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import get_args

from benchmarks.lib.workers import add_workers, jobs
from research.regal.costgraph_file import costgraph
from situate.bench.families.regal import MODELS, CountRule, synthetic
from situate.data.cluster import Cluster
from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.evaluators.workers.jobs import Jobs
from situate.files.atomic import write_bytes
from situate.host.machine import usable_cpus
from situate.simulation.simulator import Simulator
from situate.solvers.evolutionary.brkga import BRKGA, evolution


@dataclass(frozen=True)
class Wanted:
    """The graphs that are kept.

    Attributes:
        nodes: the least and the greatest number.
        short, long: evaluations of the two searches.
        gain: least part of the value after the short one by which that after the long one is
            better.
    """

    nodes: tuple[int, int] = (50, 200)
    short: int = 1000
    long: int = 10_000
    gain: float = 0.18


WANTED = Wanted()

PARTS = {"train": 10_000, "valid": 1000, "test": 1000}

CHUNK = 64
"""Candidates after which progress is written."""


def main(arguments: list[str] | None = None) -> None:
    """Make all parts."""
    options = _options(arguments)
    with jobs(options, candidate, options.seed, options.counted, WANTED) as candidates:
        for part in PARTS:
            _make(candidates, part, getattr(options, part), options)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    for part, count in PARTS.items():
        parser.add_argument(
            f"--{part}", type=int, default=count, help=f"graphs; default: {count:,}"
        )
    parser.add_argument("--seed", type=int, default=0)
    counted = get_args(CountRule)
    parser.add_argument(
        "--counted", choices=counted, default=counted[0], help="tensors of an op's cost"
    )
    add_workers(parser, usable_cpus(), "candidates")
    return parser.parse_args(arguments)


def _make(candidates: Jobs, part: str, count: int, options: argparse.Namespace) -> None:
    """The first `count` graphs of a part that are worth a search."""
    folder = options.folder / part
    folder.mkdir(parents=True, exist_ok=True)
    progress = _Progress(folder.with_suffix(".json"), options)
    while progress.kept < count:
        numbers = range(progress.tried, progress.tried + CHUNK)
        files = candidates.map([(part, number) for number in numbers])
        for number, file in zip(numbers, files, strict=False):
            if progress.kept == count:
                break
            if file is not None:
                write_bytes(folder / f"{progress.kept:05}.pb.gz", file)
                progress.kept += 1
            progress.tried = number + 1
        progress.write()
        print(f"{part}: {progress.kept:,} of {count:,}, {progress.tried:,} tried", flush=True)


class _Progress:
    """Candidates of a part that were tried and kept, in a file beside its folder.

    Raises:
        SystemExit: the file is of another seed or reading of costs.
    """

    def __init__(self, path: Path, options: argparse.Namespace) -> None:
        self._path, self.tried, self.kept = path, 0, 0
        self._of = {"seed": options.seed, "counted": options.counted}
        if path.exists():
            result = json.loads(path.read_text())
            self.tried, self.kept = result.pop("tried"), result.pop("kept")
            if result != self._of:
                raise SystemExit(f"{path}: is of {result}, not of {self._of}: give another folder")

    def write(self) -> None:
        counts = {"tried": self.tried, "kept": self.kept}
        write_bytes(self._path, json.dumps(self._of | counts).encode())


def candidate(
    seed: int, counted: CountRule, wanted: Wanted, part: str, number: int
) -> bytes | None:
    """The file of a candidate, if it is kept."""
    draw = random.Random(f"{part} {seed} {number}")
    model, nodes = draw.choice(list(MODELS)), draw.randint(*wanted.nodes)
    graph = synthetic(model, nodes, draw.getrandbits(32), count_rule=counted)
    return costgraph(graph) if gain(graph, number, wanted) >= wanted.gain else None


def gain(graph: Graph, seed: int, wanted: Wanted) -> float:
    """The part of the value after few evaluations by which that after many is better."""
    problem = Problem(replace(graph, unit="s"), Cluster.identical(2), rules=RULES["regal"])
    population = evolution(Simulator(problem), BRKGA["paper"], goal="time", seed=seed)
    values = []
    for evaluations in (wanted.short, wanted.long):
        population.run(evaluations - population.evaluations, inf, 1)
        values.append(population.best()[1])
    return 1 - values[1] / values[0]


if __name__ == "__main__":
    main()
