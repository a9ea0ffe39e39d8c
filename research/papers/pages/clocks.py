"""The page's parts on hours: searches by a virtual clock, end to end, and Spotlight's 500
minutes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from research.papers import markdown
from research.papers.claims import claim
from research.papers.claims import spotlight as spotlight_claims
from research.papers.claims.claim import Claim
from research.papers.clocks import spotlight_hours
from research.papers.published import TITLES

PLANNER_HOURS = 3
"""That the planner takes at most, on its largest benchmark."""

LARGEST = "nmt8/8"

MOSTLY = 0.5
"""Fraction of failures from which on hours by the clock are not those of placements that run."""

Row = Mapping[str, Any]


def searches(content: Mapping[str, Any]) -> Mapping[str, str]:
    """Names of text/search_hours.md."""
    rows = content["tables"]["searches"]
    result = list(_planner_claims(rows))
    return {
        "post": _post([row for row in rows if row["method"] == "post"]),
        "planner": _planner([row for row in rows if row["method"] == "hierarchical"]),
        "claims": claim.table(result) if result else "None was run.",
    }


def _title(row: Row) -> str:
    network, gpus = row["case"].split("/")
    return f"{TITLES[network]}, {gpus}"


def _grouped(rows: Sequence[Row], *columns: str) -> Iterator[list[Row]]:
    """Rows that are alike but for their seeds."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    yield from groups.values()


def _mean(rows: Sequence[Row], column: str) -> float:
    return statistics.fmean(math.inf if row[column] is None else row[column] for row in rows)


def _hours(value: float) -> str:
    return markdown.NONE if math.isinf(value) else f"{value:.2f}"


def _post(rows: Sequence[Row]) -> str:
    lines = [
        (
            _title(own[0]),
            markdown.settings(own[0]["settings"]),
            markdown.seconds(_mean(own, "best")),
            _hours(_mean(own, "best_hours")),
            _hours(_mean(own, "hours")),
        )
        for own in _grouped(rows, "case", "settings")
    ]
    head = ("", "settings", "best step [s]", "hours until it", "hours in all")
    return markdown.table(head, lines, 2)


def _planner(rows: Sequence[Row]) -> str:
    lines = [
        (
            _title(own[0]),
            markdown.settings(own[0]["settings"]),
            _controllers(own[0]),
            markdown.seconds(_mean(own, "best")),
            markdown.seconds(_mean(own, "first_mean")),
            markdown.seconds(_mean(own, "last_mean")),
            _hours(_mean(own, "hours")),
            f"{_mean(own, 'staleness'):.1f}",
        )
        for own in _grouped(rows, "case", "settings", "controllers")
    ]
    head = (
        "", "settings", "controllers", "best step [s]", "mean of the first 60", "of the last 60",
        "hours", "updates behind",
    )  # fmt: skip
    return markdown.table(head, lines, 3)


def _controllers(row: Row) -> str:
    return f"{row['controllers']}, asynchronous" if row["controllers"] else "1, waits"


def _planner_claims(rows: Sequence[Row]) -> Iterator[Claim]:
    own = [
        row
        for row in rows
        if (row["case"], row["settings"]) == (LARGEST, "paper") and row["controllers"]
    ]
    if own:
        hours = _mean(own, "hours")
        failed = sum(row["failures"] for row in own) / sum(row["samples"] for row in own)
        yield Claim(
            "1,000 iterations take at most three hours for the largest benchmark",
            "no longer by the clock of 4 controllers of 4 workers, NMT with 8 layers, `paper`",
            f"{hours:.2f} hours, without set-ups; {markdown.percent(failed)} of the placements "
            "fail, which takes no time",
            "unlike" if failed > MOSTLY else claim.verdict(hours <= PLANNER_HOURS),
        )


def spotlight(content: Mapping[str, Any]) -> Mapping[str, str]:
    """Names of text/spotlight_hours.md."""
    runs = content["tables"]["runs"]
    result = spotlight_claims.long_claims(runs)
    return {
        "minutes": f"{spotlight_hours.MINUTES} minutes",
        "table": _searches(runs),
        "modules": _modules(content["tables"]["modules"], runs),
        "claims": claim.table(result),
        "met": claim.counted(result),
    }


def _searches(runs: Sequence[Row]) -> str:
    lines = [
        (
            f"{run['method']}, `{run['settings']}`",
            str(run["seed"]),
            markdown.seconds(run["first_best"]),
            markdown.seconds(run["best"]),
            f"{run['best_hours']:.2f}",
            markdown.seconds(run["last_mean"]),
            str(run["gpus"]),
            f"{run['moved_bytes'] / 1e6:.1f} MB",
            f"{run['step_hours']:.2f}",
            f"{run['setup_seconds']:.1f}",
        )
        for run in runs
    ]
    head = (
        "", "seed", "best of the first 60", "best", "hours until it", "mean of the last 60", "GPUs",
        "moved", "hours of steps alone", "set-up [s]",
    )  # fmt: skip
    return markdown.table(head, lines)


def _modules(rows: Sequence[Row], runs: Sequence[Row]) -> str:
    """Where the best placement of the slides' own search has each module."""
    own = [run for run in runs if (run["method"], run["settings"]) == ("spotlight", "paper")]
    best = min(own, key=lambda run: run["best"])
    key = {name: best[name] for name in ("method", "settings", "seed")}
    result = [row for row in rows if key.items() <= row.items()]
    devices = [name for name in result[0] if name not in (*key, "module", "seconds")]
    lines = [
        (
            row["module"],
            markdown.seconds(row["seconds"]),
            *(f"{100 * row[d]:.0f} %" for d in devices),
        )
        for row in result
    ]
    return markdown.table(("module", "seconds", *devices), lines)
