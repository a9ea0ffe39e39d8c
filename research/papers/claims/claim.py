"""A sentence of a paper, like held against like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.lib.record import Target
from research.papers import markdown
from research.papers.checks import TIE

Verdict = Literal["yes", "no", "by construction", "unlike"]
"""Met or not; or not counted, because it holds by construction, or because the cases differ."""

SYMBOLS: dict[Verdict, str] = {
    "yes": "yes",
    "no": "**no**",
    "by construction": "not counted: by construction",
    "unlike": "not counted: unlike",
}


@dataclass(frozen=True)
class Claim:
    """A sentence, its confirmation here, the finding, and the verdict."""

    sentence: str
    confirmed: str
    finding: str
    verdict: Verdict


def verdict(met: bool) -> Verdict:
    """The verdict on a claim that counts."""
    return "yes" if met else "no"


def between(
    sentence: str, confirmed: str, values: Mapping[str, float], low: float, high: float
) -> Claim:
    """A printed range, tested at both ends: the fraction of every row is to lie within it."""
    inside = [row for row, value in values.items() if low - TIE <= value <= high + TIE]
    ends = f"{markdown.percent(min(values.values()))} to {markdown.percent(max(values.values()))}"
    text = f"{ends}; within on {len(inside)} of {len(values)} rows"
    return Claim(sentence, confirmed, text, verdict(len(inside) == len(values)))


def on_all(sentence: str, confirmed: str, holds: Mapping[str, bool], what: str = "") -> Claim:
    """A claim that is to hold on every row."""
    assert holds, f"no row that {confirmed!r} could hold on"
    count = sum(holds.values())
    text = f"on {count} of {len(holds)} rows" + (f"; {what}" if what else "")
    return Claim(sentence, confirmed, text, verdict(count == len(holds)))


def table(claims: Sequence[Claim]) -> str:
    """A row each."""
    head = ("the paper's sentence", "what would confirm it", "found", "met")
    rows = [(c.sentence, c.confirmed, c.finding, SYMBOLS[c.verdict]) for c in claims]
    return markdown.table(head, rows, len(head))


def counted(claims: Sequence[Claim]) -> str:
    """Such as `5 of 14`, of those that count."""
    count = [claim for claim in claims if claim.verdict in ("yes", "no")]
    return f"{sum(claim.verdict == 'yes' for claim in count)} of {len(count)}"


def targets(claims: Sequence[Claim]) -> list[Target]:
    """Those that count, as a record keeps them."""
    return [
        Target(f"{c.sentence}: {c.confirmed}", "met", c.finding, c.verdict == "yes")
        for c in claims
        if c.verdict in ("yes", "no")
    ]
