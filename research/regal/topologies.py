"""Rewards by topology (REGAL, Fig. 12): each graph of a set and copies of it, times and sizes of
which are multiplied by noise (A.1.2), planned by `regal` and by BRKGA with the same decoder and as
many evaluations.

A reward is minus the value of `regal`'s plan over BRKGA's: above -1 `regal` is better.

    python -m research.regal.topologies SET/time/test --name real_time \\
        --weights trained/weights.safetensors --copies 99
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np
import torch

from benchmarks.lib.record import Row, show, write
from benchmarks.lib.workers import add_workers, jobs
from research import RESULTS
from research.regal.compared import DEVICES, Compared, guided, plain
from research.regal.data import graphs_hash, trained
from research.regal.tasks import outcome
from situate import RULES, Cluster, Problem
from situate.data.problem import Objective
from situate.host.machine import usable_cpus
from situate.readers import read
from situate.solvers.evolutionary.regal.proposals import derived
from situate.solvers.evolutionary.regal.training.data_set import copied

PERCENTILES = {"least": 0, "lower_quartile": 25, "median": 50, "upper_quartile": 75, "most": 100}


def main(arguments: list[str] | None = None) -> None:
    """Plan, print and record."""
    options = _options(arguments)
    paths = sorted(path for path in options.folder.iterdir() if path.is_file())[: options.graphs]
    regal, brkga = _pair(options)
    tasks = [
        Task(path, copy, options.objective, options.seed, regal, brkga)
        for path in paths
        for copy in range(options.copies + 1)
    ]
    with jobs(options, outcome) as pool:
        result = list(pool.map((task,) for task in tasks))
    rewards = np.array(result).reshape(len(paths), -1)
    rows = list(_rows(paths, rewards))
    tables = {
        "all": [_row("all", rewards)],
        "topologies": rows,
        "weights": [trained(options.weights.stem, options.weights)],
        "data": [{"graphs": len(paths), "sha256": graphs_hash(paths)}],
    }
    options.weights = options.weights.name
    show(f"regal_topologies_{options.name}", tables["all"])
    write(RESULTS / f"regal_topologies_{options.name}.json", tables, options=options)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="of graph files")
    parser.add_argument("--name", required=True, help="the record is regal_topologies_NAME.json")
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--objective", choices=get_args(Objective), default="time")
    parser.add_argument("--copies", type=int, default=99, help="of each graph; default: 99")
    parser.add_argument("--evaluations", type=int, default=5000)
    parser.add_argument("--graphs", type=int, help="of the folder; default: all")
    parser.add_argument("--seed", type=int, default=0)
    add_workers(parser, usable_cpus(), "graphs")
    return parser.parse_args(arguments)


def _pair(options: argparse.Namespace) -> tuple[Compared, Compared]:
    """`regal` with the weights, and BRKGA with the decoder of these."""
    regal = next(
        method
        for method in guided(options.evaluations, {"": options.weights})
        if method.method != "idrs"
    )
    return regal, next(
        method for method in plain(options.evaluations) if method.label == regal.plain
    )


@dataclass(frozen=True)
class Task:
    """A copy of a graph; copy 0 is the graph itself."""

    path: Path
    copy: int
    objective: Objective
    seed: int
    regal: Compared
    brkga: Compared

    def run(self) -> float:
        """The reward."""
        torch.set_num_threads(1)
        graph = read(self.path)
        if self.copy:
            graph = copied(graph, derived(self.seed, self.copy))
        problem = Problem(graph, Cluster.identical(DEVICES), self.objective, RULES["regal"])
        reached, reference = (
            method.planned(problem, self.seed).value for method in (self.regal, self.brkga)
        )
        return -reached / reference if reference else -1.0


def _rows(paths: list[Path], rewards: np.ndarray) -> Iterator[Row]:
    """A row a topology, the best median first."""
    best_first = np.argsort(-np.median(rewards, axis=1), kind="stable")
    for i in best_first:
        yield _row(paths[i].name, rewards[i])


def _row(name: str, rewards: np.ndarray) -> Row:
    percentiles = np.percentile(rewards, list(PERCENTILES.values()))
    return {
        "graph": name,
        "rewards": rewards.size,
        "mean": float(rewards.mean()),
        **dict(zip(PERCENTILES, percentiles.tolist(), strict=True)),
        "no_worse_%": float(100 * (rewards >= -1 - 1e-9).mean()),
    }


if __name__ == "__main__":
    main()
