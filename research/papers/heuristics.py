"""Both tables' cases without a policy: list scheduling, and baselines on the learners' terms.

HEFT and ETF as the methods give them, then their placements in the order in which the learners'
machine runs ops; uniform draws over groups by `structure`, hill climbing over its own, and `auto`.
The measurements of an interrupted invocation at the same commit are kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.lib.record import Row, rows_at_commit, show, write
from benchmarks.lib.workers import add_workers
from research import RESULTS
from research.papers import baselines, published, rules
from research.papers.cases import Case, calibrated
from research.papers.hierarchical_table import SAMPLES as PLANNER_SAMPLES
from research.papers.runs import Run, by_workers
from situate.data.problem import Problem
from situate.solvers import solve
from situate.solvers.learned.driver import SAMPLES

Key = tuple[Any, ...]

LISTS = ("heft", "etf")

CASES = (
    *(Case(row.network, row.gpus, "k80") for row in published.POST),
    *(Case(row.network, row.gpus, "k40") for row in published.HIERARCHICAL),
)

MEASURED = {"k80": SAMPLES, "k40": PLANNER_SAMPLES}
"""Placements that the learners of a machine's table measure."""

KEY = ("machine", "case", "method", "seed")
"""Columns that tell rows apart; list scheduling's have the first two."""


def main(arguments: list[str] | None = None) -> None:
    """Run, print and record."""
    options = _parser().parse_args(arguments)
    cases = [calibrated(case) for case in CASES if _name(case) in options.rows]
    lists = {_key(row): row for row in [*rows_at_commit(options.out, "rules"), *map(_lists, cases)]}
    show("list scheduling, seconds", list(lists.values()))
    runs: dict[Key, Row] = {_key(row): row for row in rows_at_commit(options.out, "runs")}
    missing = [run for run in _runs(cases, options.seeds) if _key(baselines.key(run)) not in runs]
    for row in by_workers(missing, options, baselines.row):
        runs[_key(row)] = row
        tables = {"rules": _sorted(lists), "runs": _sorted(runs)}
        write(options.out, tables, options=options)
    show("baselines, seconds", _sorted(runs))


def _parser() -> argparse.ArgumentParser:
    names = [_name(case) for case in CASES]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", choices=names, default=names, metavar="ROW")
    parser.add_argument("--seeds", type=int, default=5, help="0, 1, ...; default: 5")
    add_workers(parser, 2, "runs")
    parser.add_argument("--out", type=Path, default=RESULTS / "heuristics.json", metavar="FILE")
    return parser


def _name(case: Case) -> str:
    """Such as `k80/resnet50/2`."""
    return f"{case.machine}/{case.name}"


def _lists(case: Case) -> Row:
    problem = case.problem()
    figures: dict[str, Any] = {"machine": case.machine, "case": case.name}
    for method in LISTS:
        figures |= _list(problem, method)
    return figures


def _list(problem: Problem, method: str) -> Row:
    """Seconds of a step in the method's own order and in the learners', and to find the plan."""
    result = solve(problem, method, threads=1)
    return {
        method: result.value if result.feasible else None,
        f"{method}_placed": rules.seconds(problem, result.placement),
        f"{method}_took": round(result.seconds, 3),
    }


def _runs(cases: Sequence[Case], seeds: int) -> Iterator[Run]:
    for seed in range(seeds):
        for case in cases:
            for method in baselines.METHODS:
                yield Run(case, method, "tuned", seed, MEASURED[case.machine])


def _key(row: Row) -> Key:
    return tuple(row.get(column, "") for column in KEY)


def _sorted(rows: Mapping[Key, Row]) -> list[Row]:
    return [rows[key] for key in sorted(rows)]


if __name__ == "__main__":
    main()
