"""The best of several ways of cutting a batch into slices."""

from __future__ import annotations

from dataclasses import dataclass

from situate.results.result import Result


@dataclass(frozen=True)
class SliceTrial:
    """A way of cutting the batch, with its best plan.

    Attributes:
        samples: of each slice; empty for the whole batch.
        result: the best plan; None if the way was left out.
        left_out: the reason for leaving it out; empty if it was not.
    """

    samples: tuple[int, ...]
    result: Result | None
    left_out: str = ""


@dataclass(frozen=True)
class Choice:
    """The best plan of a step, its batch whole or in slices, and the alternatives.

    Attributes:
        result: the best plan; its seconds and evaluations are those of all searches.
        tried: all ways of cutting the batch, those with a plan first.
        capturing: seconds of the captures, which no time limit counts.
        uncut: the reason for not cutting the batch; empty if it may be cut.
    """

    result: Result
    tried: tuple[SliceTrial, ...]
    capturing: float
    uncut: str
