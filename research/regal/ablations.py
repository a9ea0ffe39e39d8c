"""Trainings that differ in one respect: the proposals of the policy (REGAL, Table 4), or the rounds
of message passing, T (Fig. 4b).

Each variant is trained with every seed into a folder of its own, from which the same command goes
on. Its best reward in validation is recorded, with the curve, and its improvement over BRKGA with
the same decoder and as many evaluations on the graphs of `test`.

    python -m research.regal.ablations proposals SET/memory --name real_memory \\
        --objective memory --out FOLDER --steps 1000
    python -m research.regal.ablations rounds SET/time --name real_time --out FOLDER
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np

from benchmarks.lib.record import Row, show, write
from benchmarks.lib.workers import add_workers, jobs
from research import RESULTS
from research.regal.compared import DEVICES, Task, guided, plain
from research.regal.data import graph_files, graphs_hash, trained
from research.regal.evaluation import Values, interval
from research.regal.published import TABLE_4
from research.regal.tasks import outcome
from situate import Cluster
from situate.evaluators.workers.jobs import Jobs
from situate.host.machine import usable_cpus
from situate.simulation.simulator import Decoder
from situate.solvers.evolutionary.regal import weights
from situate.solvers.evolutionary.regal.settings import Proposed, RegalSettings
from situate.solvers.evolutionary.regal.training.data_set import Machine
from situate.solvers.evolutionary.regal.training.train import Options, settings_of, train

ROUNDS = (0, 1, 2, 4, 8, 16)

SETS: tuple[tuple[str, ...], ...] = (
    ("placement",),
    ("scheduling",),
    ("placement", "scheduling"),
    ("transfers",),
    ("scheduling", "transfers"),
    ("placement", "scheduling", "transfers"),
)
"""Kinds of choices that are proposed together; the first three are the paper's."""

PLACEMENT_LEVELS, TRANSFER_LEVELS = 2, 16
SCHEDULING_LEVELS = {"time": 16, "memory": 2}
"""Levels of quantisation (A.14, A.15; the paper has none of transfers)."""

POINTS = 10
"""Points of each curve."""


def main(arguments: list[str] | None = None) -> None:
    """Train, plan, print and record."""
    options = _options(arguments)
    with jobs(options, outcome) as pool:
        rows, curves, files = [], list[Row](), list[Row]()
        for name, settings in _variants(options).items():
            result = [_trained(name, settings, seed, options) for seed in range(options.seeds)]
            values = [_improvements(path, pool, options) for path in result]
            abouts = [weights.read(path)[1] for path in result]
            rows.append(_row(name, abouts, values, options))
            curves += [
                {"variant": name, "seed": seed, "curve": about.curve}
                for seed, about in enumerate(abouts)
            ]
            files += [trained(f"{name}, seed {seed}", path) for seed, path in enumerate(result)]
    graphs = _graphs(options)
    data = [{"graphs": len(graphs), "sha256": graphs_hash(graphs)}]
    tables = {"variants": rows, "curves": curves, "weights": files, "data": data}
    record = f"regal_{options.which}_{options.name}"
    show(record, rows)
    write(RESULTS / f"{record}.json", tables, options=options)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", choices=("proposals", "rounds"))
    parser.add_argument("folder", type=Path, help="with folders train, valid and test")
    parser.add_argument("--name", required=True, help="the record is regal_WHICH_NAME.json")
    parser.add_argument("--out", type=Path, required=True, help="a folder for all trainings")
    parser.add_argument("--objective", choices=("time", "memory"), default="time")
    parser.add_argument("--settings", default="tuned", help="that all have but for what differs")
    parser.add_argument("--decoder", choices=get_args(Decoder), default="serial")
    parser.add_argument("--steps", type=int, default=500, help="of each training; default: 500")
    parser.add_argument("--copies", type=int, default=0, help="of each graph with noise")
    parser.add_argument("--seeds", type=int, default=2, help="trainings of a variant; default: 2")
    parser.add_argument("--evaluations", type=int, default=5000, help="of each test graph")
    parser.add_argument("--graphs", type=int, default=100, help="of test at most; default: 100")
    add_workers(parser, usable_cpus(), "graphs")
    return parser.parse_args(arguments)


def _variants(options: argparse.Namespace) -> dict[str, RegalSettings]:
    result = settings_of(options.settings, options.objective)
    breeding = replace(result.breeding, decoder=options.decoder)
    base = replace(result, breeding=breeding, steps=options.steps)
    if options.which == "rounds":
        return {str(t): replace(base, shape=replace(base.shape, rounds=t)) for t in ROUNDS}
    return {
        " and ".join(kinds): replace(base, proposed=_proposed(kinds, options.objective))
        for kinds in SETS
    }


def _proposed(kinds: tuple[str, ...], objective: str) -> Proposed:
    return Proposed(
        placement=PLACEMENT_LEVELS if "placement" in kinds else 0,
        scheduling=SCHEDULING_LEVELS[objective] if "scheduling" in kinds else 0,
        transfers=TRANSFER_LEVELS if "transfers" in kinds else 0,
    )


def _trained(name: str, settings: RegalSettings, seed: int, options: argparse.Namespace) -> Path:
    """The file of weights of a training."""
    out = options.out / f"{options.which}-{name}-{seed}".replace(" ", "-")
    out.parent.mkdir(parents=True, exist_ok=True)
    machine = Machine(Cluster.identical(DEVICES), "regal", options.objective)
    training = Options(
        options.folder,
        out,
        machine,
        settings,
        copies=options.copies,
        seed=seed,
        threads=usable_cpus(),
        command="python -m research.regal.ablations",
        every=max(1, options.steps // POINTS),
    )
    return train(training, print, lambda point: print(f"{out.name}: {point}", flush=True))


def _graphs(options: argparse.Namespace) -> list[Path]:
    """The graphs of the test."""
    return graph_files(options.folder / "test", options.graphs)


def _improvements(path: Path, pool: Jobs, options: argparse.Namespace) -> Values:
    """(graphs,) per cent over BRKGA with the same decoder."""
    graphs = _graphs(options)
    [regal] = [e for e in guided(options.evaluations, {"": path}) if e.method == "regal"]
    [brkga] = [e for e in plain(options.evaluations) if e.label == regal.plain]
    tasks = [Task(graph, options.objective, 0, (regal, brkga)) for graph in graphs]
    result = list(pool.map((task,) for task in tasks))
    return np.array([100 * (1 - of[regal.label][0] / of[brkga.label][0]) for of in result])


def _row(
    name: str, abouts: list[weights.About], values: list[Values], options: argparse.Namespace
) -> Row:
    """Rewards are of validation; intervals are over graphs, each of which counts by its mean over
    seeds."""
    peaks = [max(point[2] or point[1] for point in about.curve) for about in abouts]
    of_graphs = np.mean(values, axis=0)
    paper = TABLE_4.get(name) if options.objective == "memory" else None
    return {
        "variant": name,
        "seeds": len(abouts),
        "steps": abouts[0].steps,
        "best_reward": max(peaks),
        "mean_best_reward": float(np.mean(peaks)),
        "test_%": float(of_graphs.mean()),
        "interval_%": interval(of_graphs),
        "graphs": len(of_graphs),
        "paper_valid_%": paper[0] if paper else None,
        "paper_test_%": paper[1] if paper else None,
    }


if __name__ == "__main__":
    main()
