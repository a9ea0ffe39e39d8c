"""Results of one experiment as the checks and the page read them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.lib.record import Row, read_record


@dataclass(frozen=True)
class Spread:
    """Mean, least and most of `count` seeds; infinite where one found nothing that fits."""

    mean: float
    low: float
    high: float
    count: int


def spread(values: Sequence[float | None]) -> Spread | None:
    """None of no values."""
    finite = [math.inf if value is None else value for value in values]
    return (
        Spread(statistics.fmean(finite), min(finite), max(finite), len(finite)) if finite else None
    )


APART = ("bytes", "heavy-edge", "paper")
"""Settings whose runs may be in a file of their own, for these take long or are made later."""


def apart(path: Path) -> dict[str, dict[str, Any]]:
    """By settings, the content of the file that holds their runs alone."""
    files = {name: path.with_stem(f"{path.stem}_{name}") for name in APART}
    return {name: _only(name, file) for name, file in files.items() if file.is_file()}


def _only(settings: str, path: Path) -> dict[str, Any]:
    content = read_record(path)
    runs = [run for run in content["tables"]["runs"] if run["settings"] == settings]
    return {**content, "tables": {"runs": runs}}


@dataclass(frozen=True)
class Results:
    """Rows of the rules, one a case, and rows of the runs, one a method, settings and seed."""

    rules: Sequence[Row]
    runs: Sequence[Row]

    @classmethod
    def read(cls, path: Path) -> Results:
        """The tables of a file of benchmarks/results and its `apart`; empty where there is none."""
        if not path.is_file():
            return cls([], [])
        tables = read_record(path)["tables"]
        others = [run for other in apart(path).values() for run in other["tables"]["runs"]]
        return cls(tables["rules"], tables["runs"] + others)

    @property
    def cases(self) -> list[str]:
        """Names, in order."""
        return [str(row["case"]) for row in self.rules]

    def rule(self, case: str, column: str) -> float:
        """Seconds by the rules; infinite where the placement does not fit."""
        value = next(row[column] for row in self.rules if row["case"] == case)
        return math.inf if value is None else float(value)

    def better(self, case: str) -> float:
        """The better of one GPU and the expert."""
        return min(self.rule(case, "single"), self.rule(case, "expert"))

    def of(self, case: str, method: str, settings: str) -> list[Row]:
        """The runs of a method, by seed; settings do not matter to one that does not learn."""
        wanted = [r for r in self.runs if r["case"] == case and r["method"] == method]
        result = [r for r in wanted if r["settings"] == settings or "mean" not in r]
        return sorted(result, key=lambda run: run["seed"])

    def spread(self, case: str, method: str, settings: str, column: str = "best") -> Spread | None:
        """Over the seeds; None where there are no runs."""
        return spread([run.get(column) for run in self.of(case, method, settings)])

    def mean(self, case: str, method: str, settings: str, column: str = "best") -> float:
        """Over the seeds; NaN where there are no runs."""
        result = self.spread(case, method, settings, column)
        return math.nan if result is None else result.mean
