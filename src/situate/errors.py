"""The one family of errors: each message names the place and, where there is one, the remedy."""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Iterable
from itertools import takewhile

MAX_COMPARISONS = 200
"""Most names that a misspelt one is compared with letter by letter."""


class SituateError(ValueError):
    """Anything that the user can mend: bad input, an impossible request, a missing extra."""


class GraphError(SituateError):
    """A graph that breaks its own rules: a cycle, a duplicate name, a dangling tensor."""


class ClusterError(SituateError):
    """A cluster that cannot exist: no devices, negative memory, devices without a link."""


class ReadError(SituateError):
    """A file that cannot be read as a file of its format."""


class PlanError(SituateError):
    """A plan that does not belong to this graph or cluster."""


class ScheduleError(SituateError):
    """A schedule that breaks a dependency, a device, a channel or a capacity."""


class MissingExtra(SituateError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        # Pickle makes an exception again from the arguments of its base class.
        super().__init__(package, extra)

    def __str__(self) -> str:
        package, extra = self.args
        return f"this needs {package}, which is not installed: pip install 'situate[{extra}]'"


def nearest(name: str, candidates: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the candidate closest to `name`, else the list of candidates; empty
    without any."""
    names = sorted(candidates)
    if not names:
        return ""
    close = difflib.get_close_matches(name, _likely(name, names), n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(names[:20])}" + (", ..." if len(names) > 20 else "")


def _likely(name: str, names: list[str]) -> list[str]:
    """All names if they are few, else those that begin and end most like `name`. Comparing it with
    every name of a large graph would take minutes."""
    if len(names) <= MAX_COMPARISONS:
        return names
    return heapq.nlargest(MAX_COMPARISONS, names, key=lambda other: _shared(name, other))


def _shared(a: str, b: str) -> int:
    """Characters that two names have in common at the beginning and at the end."""
    pairs = zip(a, b, strict=False), zip(reversed(a), reversed(b), strict=False)
    return sum(len(list(takewhile(lambda pair: pair[0] == pair[1], both))) for both in pairs)


def plural(count: int, noun: str) -> str:
    """`1 op`, `2,000 ops`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
