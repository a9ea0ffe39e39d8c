"""`auto` for one second, or so many evaluations, on instances whose optimum, or best value, is
published."""

from __future__ import annotations

import argparse
import csv
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import situate
from benchmarks.lib.record import ROOT, Row, Target, record

DNN = ROOT / "tests" / "instances" / "dnn-partitioning"

THROUGHPUT = {
    "LayerGraphs/bert24_inference": 17.7899,
    "LayerGraphs/bert24_training": 41.7458,
    "LayerGraphs/resnet50_inference": 33.7747,
    "LayerGraphs/resnet50_training": 78.6318,
    "OperatorGraphs/bert_l-3_inference": 27.9186,
    "OperatorGraphs/bert_l-3_training": 65.3031,
    "OperatorGraphs/resnet50_inference": 124.349,
    "OperatorGraphs/resnet50_training": 255.194,
}
"""Milliseconds, the optimum over contiguous splits (Tarnawski et al., NeurIPS 2020)."""

LATENCY = {
    "LayerGraphs/bert24_inference": 100.2185,
    "LayerGraphs/resnet50_inference": 4197.06,
    "OperatorGraphs/bert_l-3_inference": 409.503,
    "OperatorGraphs/resnet50_inference": 839.536,
}
"""Milliseconds, the best of the authors' greedy and integer program; only the first is proved."""

DOPPLER = {"chain_mm_112nodes": 1200.07, "ffnn_192nodes": 73.02}
"""On 4 devices, the best of CP-SAT in 60 s; the first is proved."""

APPLICATIONS = {
    ("robot", 2): 1244,
    ("robot", 4): 662,
    ("robot", 8): 569,
    ("robot", 16): 569,
    ("sparse", 2): 970,
    ("sparse", 4): 484,
    ("sparse", 8): 244,
    ("sparse", 16): 122,
    ("fpppp", 8): 1062,
    ("fpppp", 16): 1062,
}
"""Best known values of STG's applications on so many processors."""

PROVED_APPLICATIONS = {("robot", 8), ("robot", 16), ("sparse", 4), ("sparse", 16)} | {
    ("fpppp", 8),
    ("fpppp", 16),
}

PROCESSORS = (2, 4, 8, 16)
LOOSE = 1e-4
"""Relative rounding of the published values."""

Rows = list[Row]


@dataclass(frozen=True)
class Budget:
    """Seconds for each instance, or evaluations in their place, and the seed."""

    time_limit: float | None
    evaluations: int | None
    seed: int


def main(arguments: list[str] | None = None) -> None:
    """Solve, print and record."""
    options = _parser().parse_args(arguments)
    seconds = options.time_limit if options.evaluations is None else None
    budget = Budget(seconds, options.evaluations, options.seed)
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
    parser.add_argument("--evaluations", type=int, help="in place of the time limit")
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
    result = situate.solve(
        problem, time_limit=budget.time_limit, evaluations=budget.evaluations, seed=budget.seed
    )
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
    for (name, processors), best in APPLICATIONS.items():
        path = next(p for p in (folder / "apps" / name, folder / f"{name}.stg") if p.exists())
        proved = (name, processors) in PROVED_APPLICATIONS
        yield _row(_identical(path, processors), name, best, proved, budget)


def _doppler(folder: Path, budget: Budget) -> Iterator[Row]:
    for name, best in DOPPLER.items():
        problem = _identical(folder / f"{name}.txt", 4)
        yield _row(problem, name, best, name.startswith("chain"), budget)


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
    yield Target(what, "the optimum on 99 %", f"{share:.1%} of {len(rows)}", share >= 0.99)
    yield from _judge_proved(rows, what)


def _judge_proved(rows: Rows, what: str = "") -> Iterator[Target]:
    """A proved optimum that is beaten means that one of the two is wrong."""
    proved = [row for row in rows if row["proved"]]
    what = what or ", ".join(dict.fromkeys(str(row["instance"]) for row in proved))
    better = sum(map(_better, proved))
    yield Target(what, "never better than proved", f"{better} of {len(proved)}", better == 0)


def _judge_doppler(rows: Rows) -> Iterator[Target]:
    yield _within(rows[0], 1.005)
    yield from _judge_proved(rows)


def _judge_throughput(rows: Rows) -> Iterator[Target]:
    return (_within(row, 1 + LOOSE) for row in rows)


def _within(row: Row, ratio: float) -> Target:
    met = row["feasible"] and row["ratio"] <= ratio
    wanted = f"within {ratio - 1:.2%} of {row['best_known']:g}"
    return Target(str(row["instance"]), wanted, f"{row['value']:.6g}", met)


if __name__ == "__main__":
    main()
