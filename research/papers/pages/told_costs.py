"""The page's part on the gain by groups that read costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from research.papers import markdown, published
from research.papers.checks import SOFTMAX, below
from research.papers.published import TITLES, PostRow
from research.papers.tables import Results

NEAR = 0.02
"""Fraction by which Post may be above the best learner."""


def fill(_: Mapping[str, Any], table: Mapping[str, Any]) -> Mapping[str, str]:
    """Names of text/told_costs.md."""
    results = Results(table["tables"]["rules"], table["tables"]["runs"])
    rows = [row for row in published.POST if results.of(_case(row), "post", "tuned")]
    titles = [_title(row) for row in rows]
    near = [_title(row) for row in rows if _post(results, row) <= _best(results, row) * (1 + NEAR)]
    under = [_title(row) for row in rows if _post(results, row) < results.better(_case(row))]
    return {
        "table": _table(results, rows),
        "most": f"{100 * NEAR:.0f} %",
        "near": markdown.of_rows(near, titles),
        "under": markdown.of_rows(under, titles),
    }


def _case(row: PostRow) -> str:
    return f"{row.network}/{row.gpus}"


def _title(row: PostRow) -> str:
    return f"{TITLES[row.network]}, {row.gpus}"


def _post(results: Results, row: PostRow) -> float:
    return results.mean(_case(row), "post", "tuned")


def _best(results: Results, row: PostRow) -> float:
    """The least mean of a learner, in any settings."""
    means = [results.mean(_case(row), m, s) for m in SOFTMAX for s in markdown.SETTINGS]
    return min(mean for mean in means if mean == mean)


def _table(results: Results, rows: Sequence[PostRow]) -> str:
    """Means of each method in `tuned` settings, and how far below them it is with told costs."""
    lines = [(_title(row), *_pairs(results, _case(row))) for row in rows]
    heads = [f"{method.replace('_', ' ')}{what}" for method in SOFTMAX for what in ("", ": gain")]
    return markdown.table(("", *heads), lines)


def _pairs(results: Results, case: str) -> list[str]:
    result: list[str] = []
    for method in SOFTMAX:
        alone, with_costs = (results.mean(case, method, s) for s in ("tuned", "heavy-edge"))
        result += [markdown.seconds(alone), markdown.percent(below(with_costs, alone))]
    return result
