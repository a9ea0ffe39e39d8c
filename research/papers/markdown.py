"""Tables and figures in Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from research.papers.tables import Spread
from situate.results.result import Knowledge

NONE = "–"

SETTINGS = {
    "tuned": "`tuned`",
    "bytes": "`tuned` by `bytes`",
    "heavy-edge": "`tuned` by `heavy-edge`",
    "paper": "`paper`",
}
"""Names of settings in records, and on the page."""

KNOWS: dict[str, Knowledge] = {
    "tuned": "measured times and FLOPs",
    "bytes": "measured times only",
    "heavy-edge": "told costs",
    "paper": "measured times only",
}
"""By settings, the kind of all learners of the papers in them, by their groups."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """A table; the first `words` columns are text, the others figures."""
    rule = [*["---"] * words, *["---:"] * (len(head) - words)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def published(value: float | None, missing: str = NONE) -> str:
    """A figure of a paper, with its two decimals."""
    return missing if value is None else f"{value:.2f}"


def seconds(value: float | None) -> str:
    """A figure of ours: `OOM` where it is infinite."""
    if value is None or math.isnan(value):
        return NONE
    if math.isinf(value):
        return "OOM"
    return f"{value:.3f}" if value >= 0.1 else f"{value:.4f}"


def settings(name: str) -> str:
    """A learner's settings, and the machine's costs that it reads in them."""
    return f"{SETTINGS[name]}, {KNOWS[name]}"


def fitted(value: float, published: float | None) -> str:
    """A figure of ours, in parentheses where it is the one that was given."""
    return f"({seconds(value)})" if value == published else seconds(value)


def spread(values: Spread | None) -> str:
    """The mean, and from the least to the most where they differ."""
    if values is None:
        return NONE
    low, high = seconds(values.low), seconds(values.high)
    if low == high:
        return seconds(values.mean)
    fitting = f"{seconds(values.mean)} " if math.isfinite(values.mean) else ""
    return f"{fitting}({low} to {high})"


def percent(fraction: float) -> str:
    """Such as `27.4 %`, with a sign below zero."""
    return f"{100 * fraction:.1f} %" if math.isfinite(fraction) else NONE


def of_rows(chosen: Sequence[str], rows: Sequence[str]) -> str:
    """The number of chosen rows, and their names, such as `1 of 3 rows (RNNLM, 2)`; where they are
    most, those of the others."""
    others = [row for row in rows if row not in chosen]
    most = len(chosen) > len(others)
    names = "; ".join(others if most else chosen)
    named = f" ({'all but ' if most else ''}{names})" if names else ""
    return f"{len(chosen)} of {len(rows)} rows{named}"


def yes(flag: bool) -> str:
    """Yes or no."""
    return "yes" if flag else "**no**"


def size(count: float) -> str:
    """Such as `36.1 GB`."""
    return f"{count / 1e9:.1f} GB"
