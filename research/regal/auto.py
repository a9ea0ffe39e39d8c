"""`auto` with a plan of the policy to begin with, and without one.

With it, a part of the budget goes to `regal` with trained weights; `auto` goes on from the best
plan of that, the order of its transfers included, beside all that it constructs by itself. The same
with a plan of `tuned_brkga` says what of this is learning. All have the same budget in all, wall
seconds (lower bound, features and network included) or evaluations, and one thread.

    python -m research.regal.auto SET/test --name synthetic_time \\
        --weights trained/weights.safetensors

Devices are those of `--cluster`; `--slowness` makes them unequal, `--bandwidth` makes transfers
take time, `--memory` limits the bytes of devices. Graphs of which no plan fits do not count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from msgspec import structs

from benchmarks.lib.record import Row, show, write
from benchmarks.lib.workers import add_workers, jobs
from research import RESULTS
from research.regal.data import graphs_hash, trained
from research.regal.evaluation import NO_WORSE, Values, interval
from research.regal.tasks import outcome
from situate import Cluster, Learning, Problem, Result, solve
from situate.data.cluster import Link
from situate.data.graph import Graph, Op
from situate.data.problem import Objective
from situate.readers import read
from situate.simulation.transfer_order import by_sequence
from situate.solvers.auto import run as run_auto
from situate.solvers.budget import Budget
from situate.solvers.search import Search


@dataclass(frozen=True)
class Limits:
    """Wall seconds, or evaluations, of a plan."""

    seconds: float | None = None
    evaluations: int | None = None

    def __str__(self) -> str:
        return f"{self.seconds:g} s" if self.seconds else f"{self.evaluations:,} evaluations"

    def part(self, share: float) -> Limits:
        """A share of it."""
        return Limits(
            None if self.seconds is None else share * self.seconds,
            None if self.evaluations is None else max(1, int(share * self.evaluations)),
        )


STARTS = ("regal", "tuned_brkga")
"""Methods that make a start."""


def main(arguments: list[str] | None = None) -> None:
    """Plan, print and record."""
    options = _options(arguments)
    paths = sorted(path for path in options.folder.iterdir() if path.is_file())[: options.graphs]
    budgets = [
        *(Limits(seconds=seconds) for seconds in options.seconds),
        *(Limits(evaluations=evaluations) for evaluations in options.evaluations),
    ]
    tasks = [Task(path, i, budgets, options) for i, path in enumerate(paths)]
    with jobs(options, outcome) as pool:
        rows = list(pool.map((task,) for task in tasks))
    with_room = [row for row in rows if row["fits"]]
    if not with_room:
        raise SystemExit(f"{options.folder}: no plan fits, of any graph: give a larger --memory")
    tables = {
        "budgets": list(_summary(budgets, with_room)),
        "graphs": rows,
        "weights": [trained(options.weights.stem, options.weights)],
        "data": [{"graphs": len(paths), "sha256": graphs_hash(paths)}],
    }
    show(f"regal_auto_{options.name}", tables["budgets"])
    options.weights = options.weights.name
    write(RESULTS / f"regal_auto_{options.name}.json", tables, options=options)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="of graph files")
    parser.add_argument("--name", required=True, help="the record is regal_auto_NAME.json")
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--objective", choices=get_args(Objective), default="time")
    parser.add_argument("--cluster", default="identical:2")
    parser.add_argument("--rules", default="regal")
    parser.add_argument(
        "--slowness", nargs="+", type=float, help="of each device: times the seconds of an op"
    )
    parser.add_argument("--bandwidth", type=float, help="bytes a second of every link")
    parser.add_argument(
        "--memory", type=float, help="of each device, as a share of what one alone would need"
    )
    parser.add_argument("--share", type=float, default=0.25, help="of the budget, for the start")
    parser.add_argument("--seconds", nargs="*", type=float, default=[0.1, 0.5, 2.0])
    parser.add_argument("--evaluations", nargs="*", type=int, default=[5000])
    parser.add_argument("--graphs", type=int, default=200, help="of the folder; default: 200")
    parser.add_argument("--seed", type=int, default=0)
    add_workers(parser, 1, "graphs, and share a machine's caches")
    options = parser.parse_args(arguments)
    devices = len(Cluster.find(options.cluster).devices)
    if options.slowness and len(options.slowness) != devices:
        parser.error(f"--slowness: give one for each of the {devices} devices")
    return options


@dataclass(frozen=True)
class Task:
    """A graph, whose number decides which start is planned first."""

    path: Path
    number: int
    budgets: Sequence[Limits]
    options: argparse.Namespace

    def run(self) -> Row:
        """The row of the graph: its ops, whether any plan fits, and the values of all."""
        torch.set_num_threads(1)
        of = problem(self.path, self.options)
        self._plans(of, Limits(evaluations=1))  # imports and first calls count for none
        plans = dict[str, Result]()
        for budget in self.budgets:
            plans |= self._plans(of, budget)
        fits = any(plan.feasible for plan in plans.values())
        values = {column: value(plan) for column, plan in plans.items()}
        return {"graph": self.path.name, "ops": of.n, "fits": fits, **values}

    def _plans(self, of: Problem, budget: Limits) -> dict[str, Result]:
        """The plans by column; each in its turn is made first."""
        makes: list[tuple[str, Callable[[], Result]]] = [
            (f"{budget}", partial(alone, of, budget, self.options)),
            *(
                (f"{budget}, {start} first", partial(started, of, budget, self.options, start))
                for start in STARTS
            ),
        ]
        turn = self.number % len(makes)
        return {column: make() for column, make in makes[turn:] + makes[:turn]}


def problem(path: Path, options: argparse.Namespace) -> Problem:
    """The problem of a graph file on the devices that are asked for."""
    cluster = Cluster.find(options.cluster)
    if options.bandwidth:
        cluster = replace(cluster, links=(Link("*", "*", options.bandwidth),))
    graph = read(path)
    if options.slowness:
        graph = slowed(graph, cluster, options.slowness)
    of = Problem(graph, cluster, options.objective, options.rules)
    if options.memory is None:
        return of
    needed = solve(of, "single", evaluations=1).schedule.peak.max()
    devices = tuple(
        structs.replace(device, memory=int(options.memory * needed)) for device in cluster.devices
    )
    return replace(of, cluster=replace(cluster, devices=devices))


def slowed(graph: Graph, cluster: Cluster, slowness: Sequence[float]) -> Graph:
    """The graph, each op with so many times its seconds on each device."""
    names = [device.name for device in cluster.devices]

    def seconds(op: Op) -> dict[str, float]:
        own = (op.seconds or {})["*"]
        return {name: own * times for name, times in zip(names, slowness, strict=True)}

    ops = tuple(structs.replace(op, seconds=seconds(op)) for op in graph.ops)
    return replace(graph, ops=ops)


def alone(of: Problem, budget: Limits, options: argparse.Namespace) -> Result:
    """The plan of `auto` by itself."""
    return solve(
        of,
        "auto",
        time_limit=budget.seconds,
        evaluations=budget.evaluations,
        seed=options.seed,
        threads=1,
    )


def started(of: Problem, budget: Limits, options: argparse.Namespace, start: str) -> Result:
    """The plan of `auto` that begins with one of a method of `STARTS`."""
    begin, part = time.perf_counter(), budget.part(options.share)
    first = solve(
        of,
        start,
        time_limit=part.seconds,
        evaluations=part.evaluations,
        seed=options.seed,
        threads=1,
        learning=Learning(weights=options.weights if start == "regal" else None),
    )
    search = Search(
        of,
        first.lower_bound or 0.0,
        budget=Budget(budget.seconds, budget.evaluations, begin=begin),
        seed=options.seed,
        threads=1,
    )
    search.budget.evaluations = first.evaluations
    # auto moves ops in a topological order, which one of priorities need not be.
    order, transfers = by_sequence(of, first.schedule, first.placement)
    search.offer(first.placement, order, [first.decoder], transfers=transfers)
    if not search.finished():
        run_auto(search)
    return search.result("auto")


def value(result: Result) -> float:
    """The value of a plan; twice of that where it does not fit."""
    return result.value * (1 if result.feasible else 2)


def _summary(budgets: Sequence[Limits], rows: Sequence[Row]) -> Iterator[Row]:
    """A row a budget and start."""
    for budget in budgets:
        for start in STARTS:
            without, with_start = (
                np.array([row[f"{budget}{end}"] for row in rows])
                for end in ("", f", {start} first")
            )
            labels = {"budget": str(budget), "first": start, "graphs": len(rows)}
            yield labels | compared(without, with_start)


def compared(without: Values, with_start: Values) -> dict[str, object]:
    """By how much a start makes plans better, and how often."""
    improved = 100 * (1 - with_start / without)
    return {
        "improvement_%": float(improved.mean()),
        "interval_%": interval(improved),
        "better_%": float(100 * (with_start * NO_WORSE < without).mean()),
        "worse_%": float(100 * (with_start > without * NO_WORSE).mean()),
        "least_%": float(improved.min()),
        "most_%": float(improved.max()),
    }


if __name__ == "__main__":
    main()
