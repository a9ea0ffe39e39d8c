"""The page's part on steps whose batch is cut into slices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from research.papers import markdown
from research.papers.published import TITLES
from research.papers.tables import spread

COLUMNS = ("tower", "data_parallel", "post", "hill_climbing", "auto", "bound")

Row = Mapping[str, Any]


def fill(content: Mapping[str, Any]) -> Mapping[str, str]:
    """Names of text/sliced_steps.md."""
    rows = content["tables"]["steps"]
    cases = list(dict.fromkeys(row["case"] for row in rows))
    lines = [
        (_title(case) if batch == "whole" else "", batch, *_cells(rows, case, batch))
        for case in cases
        for batch in ("whole", "sliced")
    ]
    head = ("", "batch", "tower", "data_parallel", "Post", "hill climbing", "auto", "bound")
    return {"table": markdown.table(head, lines, 2), "ahead": _ahead(rows, cases)}


def _title(case: str) -> str:
    network, gpus = case.split("/")
    return f"**{TITLES[network]}, {gpus}**"


def _of(rows: Sequence[Row], case: str, batch: str, method: str) -> list[float | None]:
    key = {"case": case, "batch": batch, "method": method}
    return [row["seconds"] for row in rows if key.items() <= row.items()]


def _cells(rows: Sequence[Row], case: str, batch: str) -> list[str]:
    return [markdown.spread(spread(_of(rows, case, batch, method))) for method in COLUMNS]


def _ahead(rows: Sequence[Row], cases: Sequence[str]) -> str:
    """The rows on which Post's sliced step is below the bound of the step that is whole."""
    won = [
        _title(case).strip("*")
        for case in cases
        if _mean(_of(rows, case, "sliced", "post")) < _mean(_of(rows, case, "whole", "bound"))
    ]
    return markdown.of_rows(won, [_title(case).strip("*") for case in cases])


def _mean(values: list[float | None]) -> float:
    result = spread(values)
    return math.nan if result is None else result.mean
