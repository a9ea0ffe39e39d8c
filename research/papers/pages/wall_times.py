"""The page's part on how long the papers' searches took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from research.papers import markdown

HEAD = (
    "the paper",
    "case",
    "placements",
    "workers",
    "the paper [h]",
    "the clock [h]",
    "setting up [s]",
)

NOTHING = "nothing left"
"""The figure of a search whose steps alone take longer than the paper's."""


def fill(content: Mapping[str, Any]) -> Mapping[str, str]:
    """Names of text/wall_times.md."""
    lines = [
        (
            row["paper"],
            row["case"],
            f"{row['samples']:,}",
            str(row["workers"]),
            _figure(row["paper_h"]),
            _figure(row["clock_h"]),
            _setup_figure(row["setup_s"]),
        )
        for row in content["tables"]["searches"]
    ]
    return {"table": markdown.table(HEAD, lines, 2)}


def _setup_figure(setup: float | None) -> str:
    return NOTHING if setup is not None and setup < 0 else _figure(setup)


def _figure(value: float | None) -> str:
    return markdown.NONE if value is None else f"{value:.3g}"
