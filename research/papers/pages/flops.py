"""The page's part on the gain of groups by FLOPs over groups by bytes and edges alone."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from research.papers import markdown, published
from research.papers.checks import SOFTMAX
from research.papers.published import TITLES, HierarchicalRow, PostRow
from research.papers.tables import Results

Content = Mapping[str, Any]
Cases = Sequence[PostRow | HierarchicalRow]

PLANNER = ("hierarchical", "post")


def fill(_: Content, post: Content, __: Content, planner: Content) -> Mapping[str, str]:
    """Names of text/flops.md."""
    result = _results(post), _results(planner)
    unpriced = [
        f"{TITLES[row.network]}, {row.gpus} ({paper})"
        for results, rows, method, paper in (
            (result[0], published.POST, "post", "Post"),
            (result[1], published.HIERARCHICAL, "hierarchical", "planner"),
        )
        for row in rows
        if not results.of(_case(row), method, "bytes")
    ]
    return {
        "post": _table(result[0], published.POST, SOFTMAX),
        "planner": _table(result[1], published.HIERARCHICAL, PLANNER),
        **_means(result[0], published.POST),
        "left": "; ".join(unpriced) or "none",
    }


def _results(content: Content) -> Results:
    return Results(content["tables"]["rules"], content["tables"]["runs"])


def _case(row: PostRow | HierarchicalRow) -> str:
    return f"{row.network}/{row.gpus}"


def _loss(results: Results, case: str, method: str) -> float:
    """The fraction by which a method's mean with groups by `bytes` is above that by
    `structure`."""
    flops, own = (results.mean(case, method, settings) for settings in ("tuned", "bytes"))
    return own / flops - 1


def _table(results: Results, rows: Cases, methods: Sequence[str]) -> str:
    """Means with groups by `bytes`, and how far above those by `structure` they are."""
    lines = [
        (f"{TITLES[row.network]}, {row.gpus}", *_cells(results, _case(row), methods))
        for row in rows
        if results.of(_case(row), methods[0], "bytes")
    ]
    heads = [f"{method.replace('_', ' ')}{what}" for method in methods for what in ("", ": more")]
    return markdown.table(("", *heads), lines)


def _cells(results: Results, case: str, methods: Sequence[str]) -> Iterator[str]:
    for method in methods:
        yield markdown.seconds(results.mean(case, method, "bytes"))
        yield markdown.percent(_loss(results, case, method))


def _means(results: Results, rows: Cases) -> Mapping[str, str]:
    """The least, the mean and the most of Post's losses, and how many rows have one."""
    losses = [_loss(results, _case(row), "post") for row in rows]
    losses = [loss for loss in losses if math.isfinite(loss)]
    return {
        "least": markdown.percent(min(losses)),
        "most": markdown.percent(max(losses)),
        "mean": markdown.percent(statistics.fmean(losses)),
        "worse": f"{sum(loss > 0 for loss in losses)} of {len(losses)}",
    }
