"""The best of several ways of cutting a batch into slices."""

from __future__ import annotations

from dataclasses import dataclass

from situate.results.result import Result


@dataclass(frozen=True)
class Tried:
    """A way of cutting the batch that was looked at.

    Attributes:
        samples: of each slice; none for the whole batch.
        result: the best plan that was found; None where it was left out.
        left_out: why; empty where it was not.
    """

    samples: tuple[int, ...]
    result: Result | None
    left_out: str = ""


@dataclass(frozen=True)
class Choice:
    """The best plan of a step, its batch whole or in slices, and what it was chosen from.

    Attributes:
        result: the best plan; its seconds and evaluations are those of all searches.
        tried: all that was looked at, those with a plan first.
        capturing: seconds that captures took, which no time limit counts.
        uncut: why the batch is not cut; empty where it may be.
    """

    result: Result
    tried: tuple[Tried, ...]
    capturing: float
    uncut: str
