"""`auto` for one second on instances whose optimum, or best value, is published."""

from __future__ import annotations

import argparse
import csv
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import situate
from benchmarks.lib.record import ROOT, Row, Target, record
from situate.bench.families.dnn_partitioning import LATENCY, THROUGHPUT
from situate.bench.families.doppler import CP_SAT
from situate.bench.families.stg import APPLICATIONS, PROCESSORS

DNN = ROOT / "tests" / "instances" / "dnn-partitioning"

LOOSE = 1e-4
"""Relative rounding of the published values."""

Rows = list[Row]


@dataclass(frozen=True)
class Budget:
    """Seconds for each instance, and the seed."""

    time_limit: float
    seed: int


def main(arguments: list[str] | None = None) -> None:
    """Solve, print and record."""
    options = _parser().parse_args(arguments)
    budget = Budget(options.time_limit, options.seed)
    tables: dict[str, Rows] = {}
    targets: list[Target] = []
    for title, rows, judge in _families(options, budget):
        tables[title] = list(rows)
        targets += judge(tables[title])
    stg = tables.pop(STG, [])
    if stg:
        tables |= {"STG, 50 tasks": _by_processors(stg), "STG, 50 tasks, missed": _missed(stg)}
    record("known_optima", tables, targets, options=options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stg", type=Path, help="folder of the Standard Task Graph set")
    parser.add_argument("--doppler", type=Path, help="folder of DOPPLER's graphs")
    parser.add_argument("--dnn", type=Path, default=DNN, help="folder of dnn-partitioning")
    parser.add_argument("--every", type=int, default=1, metavar="K", help="each K-th row of STG")
    parser.add_argument("--time-limit", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    return parser


STG = "STG rows"


def _families(
    options: argparse.Namespace, budget: Budget
) -> Iterator[tuple[str, Iterable[Row], Callable[[Rows], Iterable[Target]]]]:
    """Title, rows and judge of every family whose folder is there."""
    if options.stg:
        yield STG, _stg(options.stg, options.every, budget), _judge_stg
        yield "STG, applications", _applications(options.stg, budget), _judge_proved
    if options.doppler:
        yield "DOPPLER", _doppler(options.doppler, budget), _judge_doppler
    yield "dnn-partitioning, throughput", _throughput(options.dnn, budget), _judge_throughput
    yield "dnn-partitioning, latency", _latency(options.dnn, budget), _judge_proved


def _row(problem: situate.Problem, name: str, best: float, proved: bool, budget: Budget) -> Row:
    """One instance solved; values in the unit of `best`, which is ms where there is a unit."""
    result = situate.solve(problem, time_limit=budget.time_limit, seed=budget.seed)
    scale = 1000 if problem.graph.unit == "s" else 1
    return {
        "instance": name,
        "processors": problem.d,
        "value": result.value * scale,
        "best_known": float(best),
        "ratio": result.value * scale / best,
        "proved": proved,
        "lower_bound": None if result.lower_bound is None else result.lower_bound * scale,
        "feasible": result.feasible,
        "verified": _verified(result),
        "evaluations": result.evaluations,
        "seconds": result.seconds,
    }


def _verified(result: situate.Result) -> bool:
    try:
        result.schedule.verify(result.problem, allow_overflow=True)
    except situate.ScheduleError:
        return False
    return True


def _stg(folder: Path, every: int, budget: Budget) -> Iterator[Row]:
    """Every K-th row whose optimum is known."""
    for processors in PROCESSORS:
        with (folder / f"Case50_{processors}_OPT.csv").open() as file:
            closed = [row for row in csv.reader(file) if len(row) == 3]
        for name, _, optimum in closed[::every]:
            problem = _identical(folder / name, processors)
            yield _row(problem, name, float(optimum), True, budget)


def _applications(folder: Path, budget: Budget) -> Iterator[Row]:
    for (name, processors), (best, bound) in APPLICATIONS.items():
        path = next(p for p in (folder / "apps" / name, folder / f"{name}.stg") if p.exists())
        yield _row(_identical(path, processors), name, best, best == bound, budget)


def _doppler(folder: Path, budget: Budget) -> Iterator[Row]:
    for (name, devices), known in CP_SAT.items():
        problem = _identical(folder / f"{name}.txt", devices)
        yield _row(problem, name, known.value, known.value == known.bound, budget)


def _identical(path: Path, devices: int) -> situate.Problem:
    graph = situate.read(path)
    return situate.Problem(graph, situate.Cluster.identical(devices))


def _throughput(folder: Path, budget: Budget) -> Iterator[Row]:
    for name, best in THROUGHPUT.items():
        problem = _own_machine(folder / "throughput-inputs" / f"{name}.json", "throughput")
        yield _row(problem, name, best, False, budget)


def _latency(folder: Path, budget: Budget) -> Iterator[Row]:
    for name, best in LATENCY.items():
        problem = _own_machine(folder / "latency-inputs" / f"{name}.json", "time")
        yield _row(problem, name, best, "bert24" in name, budget)


def _own_machine(path: Path, objective: situate.data.problem.Objective) -> situate.Problem:
    return situate.Problem(situate.read(path), objective=objective)


def _better(row: Row) -> bool:
    return bool(row["feasible"] and row["ratio"] < 1 - LOOSE)


def _reached(row: Row) -> bool:
    return bool(row["feasible"] and row["ratio"] <= 1 + LOOSE)


def _by_processors(rows: Rows) -> Rows:
    return [_share(rows, m) for m in PROCESSORS if any(r["processors"] == m for r in rows)]


def _share(rows: Rows, processors: int) -> Row:
    rows = [row for row in rows if row["processors"] == processors]
    reached = sum(map(_reached, rows))
    return {
        "processors": processors,
        "closed_rows": len(rows),
        "optimum_reached": reached,
        "share": reached / len(rows),
        "better_than_proved": sum(map(_better, rows)),
        "proved_by_our_bound": sum(row["value"] <= row["lower_bound"] for row in rows),
        "verified": sum(bool(row["verified"]) for row in rows),
        "worst_ratio": max(row["ratio"] for row in rows),
        "median_seconds": statistics.median(row["seconds"] for row in rows),
    }


def _missed(rows: Rows) -> Rows:
    return [row for row in rows if not _reached(row)]


def _judge_stg(rows: Rows) -> Iterator[Target]:
    share = statistics.mean(map(_reached, rows))
    what = "STG, closed 50-task rows"
    yield Target(what, "the optimum on 95 %", f"{share:.1%} of {len(rows)}", share >= 0.95)
    yield from _judge_proved(rows, what)


def _judge_proved(rows: Rows, what: str = "") -> Iterator[Target]:
    """A proved optimum that is beaten means that one of the two is wrong."""
    proved = [row for row in rows if row["proved"]]
    what = what or ", ".join(dict.fromkeys(str(row["instance"]) for row in proved))
    better = sum(map(_better, proved))
    yield Target(what, "never better than proved", f"{better} of {len(proved)}", better == 0)


def _judge_doppler(rows: Rows) -> Iterator[Target]:
    yield _within(rows[0], 1.05)
    yield from _judge_proved(rows)


def _judge_throughput(rows: Rows) -> Iterator[Target]:
    return (_within(row, 1.02) for row in rows)


def _within(row: Row, ratio: float) -> Target:
    met = row["feasible"] and row["ratio"] <= ratio
    wanted = f"within {ratio - 1:.0%} of {row['best_known']:g}"
    return Target(str(row["instance"]), wanted, f"{row['value']:.6g}", met)


if __name__ == "__main__":
    main()
