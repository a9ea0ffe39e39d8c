"""The page's part on ops and groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from research.papers import markdown
from research.papers.published import TITLES


def fill(content: Mapping[str, Any]) -> Mapping[str, str]:
    """Names of text/model_statistics.md."""
    lines = [
        (
            row["source"],
            TITLES[row["network"]],
            f"{row['printed_ops']:,}",
            f"{row['ops']:,}",
            _count(row["printed_groups"]),
            _count(row["groups"]),
        )
        for row in content["tables"]["statistics"]
    ]
    head = ("paper", "network", "ops", "ops here", "groups", "groups here")
    return {"table": markdown.table(head, lines, 2)}


def _count(value: int | None) -> str:
    return markdown.NONE if value is None else f"{value:,}"
