"""`auto` for one second, or so many evaluations, on instances whose optimum, or best value, is
published."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import situate
from benchmarks.lib.record import ROOT, Row, Target, record
from situate.bench.families import dnn_partitioning as dnn
from situate.bench.families import doppler, stg
from situate.bench.instances import Instance, ReferenceValue

DNN = ROOT / "tests" / "instances" / "dnn-partitioning"

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
    closed = tables.pop(STG, [])
    if closed:
        summary, missed = _by_processors(closed), _missed(closed)
        tables |= {"STG, 50 tasks": summary, "STG, 50 tasks, missed": missed}
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
        yield STG, _rows(stg.closed(options.stg)[:: options.every], budget), _judge_stg
        yield "STG, applications", _rows(stg.applications(options.stg), budget), _judge_proved
    if options.doppler:
        yield "DOPPLER", _rows(doppler.instances(options.doppler), budget), _judge_doppler
    throughput, latency = (family(options.dnn) for family in (dnn.throughput, dnn.latency))
    yield "dnn-partitioning, throughput", _rows(throughput, budget), _judge_throughput
    yield "dnn-partitioning, latency", _rows(latency, budget), _judge_proved


def _rows(instances: list[Instance], budget: Budget) -> Iterator[Row]:
    """Those of which a value is published, solved."""
    problems = ((i.name, i.make(), i.reference) for i in instances)
    return (
        _row(name, problem, reference, budget)
        for name, problem, reference in problems
        if reference and isinstance(problem, situate.Problem)
    )


def _row(name: str, problem: situate.Problem, reference: ReferenceValue, budget: Budget) -> Row:
    """One instance solved; values are milliseconds where there is a unit."""
    result = situate.solve(
        problem, time_limit=budget.time_limit, evaluations=budget.evaluations, seed=budget.seed
    )
    scale = 1000 if problem.graph.unit == "s" else 1
    return {
        "instance": name,
        "processors": problem.d,
        "value": result.value * scale,
        "best_known": reference.value * scale,
        "ratio": result.value / reference.value,
        "proved": reference.bound == reference.value,
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


def _better(row: Row) -> bool:
    return bool(row["feasible"] and row["ratio"] < 1 - LOOSE)


def _reached(row: Row) -> bool:
    return bool(row["feasible"] and row["ratio"] <= 1 + LOOSE)


def _by_processors(rows: Rows) -> Rows:
    return [_share(rows, m) for m in stg.PROCESSORS if any(r["processors"] == m for r in rows)]


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
