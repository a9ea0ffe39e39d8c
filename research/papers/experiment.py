"""An experiment of several cases: rules, runs, and a file that grows run by run."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.lib.record import Row, Target, rows_at_commit, show, write
from benchmarks.lib.workers import add_workers
from research import RESULTS
from research.papers import rules
from research.papers.cases import Case
from research.papers.runs import Run, by_workers
from research.papers.tables import Results
from situate.solvers.learned.driver import SAMPLES

SETTINGS = ("tuned", "bytes", "heavy-edge", "paper")

COLUMNS = (
    "case",
    "method",
    "settings",
    "seed",
    "best",
    "first_best",
    "last_mean",
    "failures",
    "seconds",
)
"""Columns that are printed: all but the curves."""


def parser(
    description: str | None, name: str, cases: Sequence[str], samples: int = SAMPLES
) -> argparse.ArgumentParser:
    """The options that all experiments have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", choices=cases, default=list(cases), metavar="CASE")
    parser.add_argument("--seeds", type=int, default=5, help="0, 1, ...; default: 5")
    parser.add_argument("--samples", type=int, default=samples, help=f"a run; default: {samples}")
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=["tuned", "paper"])
    add_workers(parser, 2, "runs")
    parser.add_argument("--out", type=Path, default=RESULTS / f"{name}.json", metavar="FILE")
    return parser


@dataclass
class Experiment:
    """Measures case by case, and writes its file after each run.

    Attributes:
        options: of `parser`.
        rules: methods that make one placement, see `research.papers.rules`.
        runs: the runs of a case.
        targets: the targets of the results.
    """

    options: argparse.Namespace
    rules: Sequence[str]
    runs: Callable[[Case, argparse.Namespace], Iterable[Run]]
    targets: Callable[[Results], Sequence[Target]] = lambda results: ()
    _rules: dict[str, Row] = field(default_factory=dict)
    _runs: dict[tuple[Any, ...], Row] = field(default_factory=dict)

    def measure(self, cases: Sequence[Case]) -> None:
        """Measure the rows that no earlier invocation at this commit has, print and record."""
        self._read_record()
        for case in cases:
            self._rules[case.name] = rules.row(case, self.rules)
            show(f"{case.name}: rules, seconds", [self._rules[case.name]])
            self._write()
            self._run([run for run in self.runs(case, self.options) if run.key not in self._runs])
        show("runs", [_printed_row(row) for row in self._runs.values()])
        show("targets", [vars(target) for target in self.targets(self._results())])

    def _read_record(self) -> None:
        for row in rows_at_commit(self.options.out, "runs"):
            if row["samples"] == self.options.samples:
                self._runs[_key(row)] = row
        self._rules |= {row["case"]: row for row in rows_at_commit(self.options.out, "rules")}

    def _run(self, runs: Sequence[Run]) -> None:
        for row in by_workers(runs, self.options):
            self._runs[_key(row)] = row
            self._write()

    def _results(self) -> Results:
        return Results(list(self._rules.values()), [self._runs[key] for key in sorted(self._runs)])

    def _write(self) -> None:
        results = self._results()
        tables: Mapping[str, Sequence[Row]] = {"rules": results.rules, "runs": results.runs}
        write(self.options.out, tables, self.targets(results), options=self._measured())

    def _measured(self) -> argparse.Namespace:
        """The options, with the cases and settings of all that the file holds: some of it may be an
        earlier invocation's."""
        learnt = {row["settings"] for row in self._runs.values() if "mean" in row}
        settings = [name for name in SETTINGS if name in learnt or name in self.options.settings]
        rows = list(dict.fromkeys((*self._rules, *self.options.rows)))
        fields = {"settings": settings, "rows": rows}
        return argparse.Namespace(**{**vars(self.options), **fields})


def _key(row: Row) -> tuple[Any, ...]:
    return row["case"], row["method"], row["settings"], row["seed"]


def _printed_row(row: Row) -> Row:
    return {column: row.get(column) for column in COLUMNS}
