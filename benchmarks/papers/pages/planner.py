"""The page's part on the planner's published settings."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.papers import markdown
from benchmarks.papers.planner.candidates import PUBLISHED, falls
from benchmarks.papers.published import TITLES

Runs = Sequence[Mapping[str, Any]]


def ablation(content: Mapping[str, Any]) -> Mapping[str, str]:
    """Names of text/planner_ablation.md."""
    runs = content["tables"]["runs"]
    names = [row["candidate"] for row in content["tables"]["settings"]]
    return {
        "table": table(content),
        "learns": _learning(runs, [name for name in names if name != PUBLISHED]),
        "published": _verdict(runs),
    }


def table(content: Mapping[str, Any]) -> str:
    """A row for each candidate: the published value, the source of the other, and by case the mean
    of the first and the last samples and the best."""
    runs = content["tables"]["runs"]
    cases = list(dict.fromkeys(run["case"] for run in runs))
    lines = [
        (
            row["candidate"],
            row["published"],
            row["source"],
            *(_cell(runs, case, row["candidate"]) for case in cases),
        )
        for row in content["tables"]["settings"]
    ]
    return markdown.table(("changed", "published", "as in", *map(_title, cases)), lines, 3)


def _title(case: str) -> str:
    network, gpus = case.split("/")
    return f"{TITLES[network]}, {gpus}"


def _of(runs: Runs, case: str, candidate: str) -> Runs:
    return [run for run in runs if run["case"] == case and run["candidate"] == candidate]


def _cell(runs: Runs, case: str, candidate: str) -> str:
    """Means over the seeds: from the first samples to the last, and the best."""
    own = _of(runs, case, candidate)
    first, last = (_mean(own, column) for column in ("first_mean", "last_mean"))
    better = "**" if all(map(falls, own)) else ""
    return f"{better}{first} to {last}{better}; {_mean(own, 'best')}"


def _mean(runs: Runs, column: str) -> str:
    values = [run[column] for run in runs]
    return "OOM" if None in values else markdown.seconds(statistics.fmean(values))


def _learning(runs: Runs, names: Sequence[str]) -> str:
    """The changes with which the mean falls on every case, with every seed."""
    found = [name for name in names if all(falls(r) for r in runs if r["candidate"] == name)]
    return "; ".join(found) or "none"


def _verdict(runs: Runs) -> str:
    own = [run for run in runs if run["candidate"] == PUBLISHED]
    return f"{sum(map(falls, own))} of {len(own)}"
