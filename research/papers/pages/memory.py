"""The page's part on the decisions that the memory of a GPU makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from research.papers import markdown
from research.papers.memory_limits import LIMITS
from research.papers.published import TITLES

NEAR = 0.7
"""Fraction of the smaller limit from which on a placement is shown."""

MACHINES = {"k80": "K80", "k40": "K40"}


def limits(content: Mapping[str, Any]) -> Mapping[str, str]:
    """Names of text/memory_limits.md."""
    rows = content["tables"]["placements"]
    large = [row for row in rows if row["bytes"] >= NEAR * min(LIMITS.values())]
    decided = [row for row in rows if len({row[f"fits {limit}"] for limit in LIMITS}) > 1]
    lines = [
        (
            f"{TITLES[network]}, {gpus}, {MACHINES[row['machine']]}",
            "one GPU" if row["placement"] == "single" else "expert",
            f"{row['bytes'] / 1e9:.2f} GB",
            f"{row['bytes'] / 2**30:.2f} GiB",
            *("fits" if row[f"fits {limit}"] else "OOM" for limit in LIMITS),
        )
        for row in large
        for network, gpus in [row["case"].split("/")]
    ]
    head = ("", "placement", "fullest GPU", "the same", *(f"with {limit}" for limit in LIMITS))
    return {
        "more": f"{100 * (max(LIMITS.values()) / min(LIMITS.values()) - 1):.0f} %",
        "table": markdown.table(head, lines, 2),
        "decided": str(len(decided)) if decided else "none",
        "cells": str(len(rows)),
    }
