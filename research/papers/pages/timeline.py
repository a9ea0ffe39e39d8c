"""The page's part on Post's Fig. 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from research.papers import markdown


def fill(content: Mapping[str, Any]) -> Mapping[str, str]:
    """Names of text/post_timeline.md."""
    tables = content["tables"]
    return {
        "placements": _placements(tables["placements"]),
        "inception_v3": _modules(tables["inception_v3/4"]),
        "nmt2": _modules(tables["nmt2/2"]),
    }


def _placements(rows: Sequence[Mapping[str, Any]]) -> str:
    head = ("", "placement", "step [s]", "busiest device [s]", "devices", "transfers", "moved")
    lines = [
        (
            row["case"], row["placement"], markdown.seconds(row["seconds"]),
            markdown.seconds(row["busiest_seconds"]), str(row["devices"]),
            f"{row['transfers']:,}", markdown.size(row["moved_bytes"]),
        )
        for row in rows
    ]  # fmt: skip
    return markdown.table(head, lines, 2)


def _modules(rows: Sequence[Mapping[str, Any]]) -> str:
    """Post's placement: of each module its seconds, and how much of them each device computes."""
    post = [row for row in rows if row["placement"] == "post"]
    devices = [name for name in post[0] if name not in ("placement", "module", "seconds")]
    lines = [
        (
            row["module"],
            markdown.seconds(row["seconds"]),
            *(f"{100 * row[d]:.0f} %" for d in devices),
        )
        for row in post
    ]
    return markdown.table(("module", "seconds", *devices), lines)
