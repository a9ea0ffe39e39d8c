"""The page's part on placements: the ops of each device, and the copies between devices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from research.papers import markdown
from research.papers.claims import claim
from research.papers.claims import placements as claims
from research.papers.published import TITLES

MACHINES = {"k80": "K80", "k40": "K40"}
Row = Mapping[str, Any]


def fill(content: Mapping[str, Any]) -> Mapping[str, str]:
    """Names of text/learned_placements.md."""
    tables = content["tables"]
    return {
        "placements": _placements(tables["placements"]),
        "copies": _copies(tables["copies"]),
        "split": _split(tables["placements"]),
        "claims": claim.table(result := claims.claims(tables)),
        "met": claim.counted(result),
    }


def _title(row: Row) -> str:
    network, gpus = row["case"].split("/")
    return f"{TITLES[network]}, {gpus}, {MACHINES[row['machine']]}"


def _seconds(row: Row) -> str:
    return markdown.seconds(math.inf if row["seconds"] is None else row["seconds"])


def _placements(rows: Sequence[Row]) -> str:
    head = (
        "", "placement", "step [s]", "GPUs", "least busy GPU [s]", "busiest [s]", "fullest GPU",
        "transfers", "moved", "calls on several devices",
    )  # fmt: skip
    lines = [
        (
            _title(row),
            row["placement"],
            _seconds(row),
            str(row["gpus"]),
            markdown.seconds(row["least_busy_gpu"]),
            markdown.seconds(row["busiest_gpu"]),
            markdown.size(row["fullest_gpu_bytes"]),
            f"{row['transfers']:,}",
            markdown.size(row["moved_bytes"]),
            markdown.NONE if row["calls_apart"] is None else markdown.percent(row["calls_apart"]),
        )
        for row in rows
    ]
    return markdown.table(head, lines, 2)


def _copies(rows: Sequence[Row]) -> str:
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    lines: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        cells = lines.setdefault((_title(row), row["placement"]), [])
        cells += [
            f"{row['transfers']:,}",
            markdown.size(row["bytes"]),
            markdown.seconds(row["seconds"]),
        ]
    head = [f"{kind}{what}" for kind in kinds for what in (": copies", ": bytes", ": seconds")]
    return markdown.table(("", "placement", *head), [(*key, *own) for key, own in lines.items()], 2)


def _split(rows: Sequence[Row]) -> str:
    """A sentence for every case that the encoder was placed apart on."""
    return "\n".join(_compared(rows)) or "- Not placed."


def _compared(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        if row["placement"] == "encoder apart":
            others = {
                other["placement"]: _seconds(other)
                for other in rows
                if (other["machine"], other["case"]) == (row["machine"], row["case"])
            }
            listing = "; ".join(f"{name} {value}" for name, value in others.items())
            yield f"- {_title(row)}, seconds a step: {listing}."
