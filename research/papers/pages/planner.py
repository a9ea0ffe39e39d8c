"""The page's part on the planner's published settings."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from benchmarks.lib.record import Row
from research.papers import markdown
from research.papers.planner.candidates import PUBLISHED, falls
from research.papers.planner.planner_presets import CASES
from research.papers.published import TITLES
from situate.solvers.learned.learner import Settings

WHEN = ("first", "last")
"""After the first update, and after the last."""

Runs = Sequence[Row]


def ablation(content: Mapping[str, Any]) -> Mapping[str, str]:
    """Names of text/planner_ablation.md."""
    runs = content["tables"]["runs"]
    names = [row["candidate"] for row in content["tables"]["settings"]]
    return {
        "table": table(content),
        "learns": _learning(runs, [name for name in names if name != PUBLISHED]),
        "published": _verdict(runs),
    }


def presets(content: Mapping[str, Any]) -> Mapping[str, str]:
    """Names of text/planner_presets.md."""
    runs = content["tables"]["runs"]
    labelled = [{**run, "candidate": run["settings"]} for run in runs]
    names = dict.fromkeys((run["case"], run["settings"]) for run in runs)
    lines = [(_title(case), _preset(name), *_cells(labelled, case, name)) for case, name in names]
    head = (
        "", "settings", "first update", "first 60", "last 60", "best", "placer's entropy [nats]",
        "groups in use",
    )  # fmt: skip
    missing = [case.name for case in CASES if case.name not in {case for case, _ in names}]
    return {
        "table": markdown.table(head, lines, 2),
        "left": ", ".join(f"`{case}`" for case in missing) or "none",
    }


def _preset(name: str) -> str:
    """Names that `--settings` takes are code; the others are words."""
    return f"`{name}`" if name in get_args(Settings) else name


def table(content: Mapping[str, Any]) -> str:
    """A row for each case and candidate: the published value, the source of the other, and means
    over the seeds."""
    runs = content["tables"]["runs"]
    lines = [
        (
            _title(case) if row["published"] == markdown.NONE else "",
            row["candidate"],
            row["published"],
            row["source"],
            *_cells(runs, case, row["candidate"]),
        )
        for case in dict.fromkeys(run["case"] for run in runs)
        for row in content["tables"]["settings"]
    ]
    head = (
        "", "changed", "published", "as in", "first update", "first 60", "last 60", "best",
        "placer's entropy [nats]", "groups in use",
    )  # fmt: skip
    return markdown.table(head, lines, 4)


def _title(case: str) -> str:
    network, gpus = case.split("/")
    return f"**{TITLES[network]}, {gpus}**"


def _cells(runs: Runs, case: str, candidate: str) -> Iterator[str]:
    own = [run for run in runs if run["case"] == case and run["candidate"] == candidate]
    yield _mean(own, "start_mean")
    yield _mean(own, "first_mean")
    last = _mean(own, "last_mean")
    yield f"**{last}**" if all(map(falls, own)) else last
    yield _mean(own, "best")
    after, end = (statistics.fmean(run[f"{when}_entropy"] for run in own) for when in WHEN)
    yield f"{after:.2f}, {end:.2f}"
    after, end = (statistics.fmean(run[f"{when}_groups"] for run in own) for when in WHEN)
    yield f"{after:.0f}, {end:.0f}"


def _mean(runs: Runs, column: str) -> str:
    values = [run[column] for run in runs]
    return "OOM" if None in values else markdown.seconds(statistics.fmean(values))


def _learning(runs: Runs, names: Sequence[str]) -> str:
    """The changes with which the mean falls on every case, with every seed."""
    result = [name for name in names if all(falls(r) for r in runs if r["candidate"] == name)]
    return "; ".join(result) or "none"


def _verdict(runs: Runs) -> str:
    own = [run for run in runs if run["candidate"] == PUBLISHED]
    return f"{sum(map(falls, own))} of {len(own)}"
