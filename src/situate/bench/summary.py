"""Gaps of rows to the best known and to the bound, and their means by method."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import TypeVar

from situate.bench.best_known import ROUNDED, BestKnown
from situate.bench.rows import Row

Group = TypeVar("Group", bound=Hashable)


@dataclass(frozen=True)
class Judged:
    """A row beside what is known of its problem.

    Attributes:
        gap: how far its value is above the best known, as a fraction of it; infinite for a plan
            that does not fit, and where there is none.
        bound_gap: the same to the largest bound; infinite where there is none, too.
    """

    row: Row
    gap: float
    bound_gap: float


@dataclass(frozen=True)
class Means:
    """The rows of a method.

    Attributes:
        method: its name.
        runs: how many there are, `refused` of which the method did not apply to.
        fit: how many have a plan that fits; of these alone are the gaps.
        reached: how many are as good as the best known, to the rounding of printed values.
        mean, median, worst: gap to the best known, as a fraction; NaN where nothing fits.
        bound_mean: mean gap to the largest bound, where that is above zero.
        seconds: mean wall time.
    """

    method: str
    runs: int
    refused: int
    fit: int
    reached: int
    mean: float
    median: float
    worst: float
    bound_mean: float
    seconds: float


def judged(rows: Iterable[Row], known: BestKnown) -> list[Judged]:
    """Rows with their gaps."""
    return [_judged(row, known) for row in rows]


def _judged(row: Row, known: BestKnown) -> Judged:
    entry = known.entries.get(row.problem)
    if entry is None or row.value is None or not row.feasible:
        return Judged(row, math.inf, math.inf)
    best, bound = entry.best, entry.bound
    return Judged(
        row,
        _gap(row.value, best.value if best else None),
        _gap(row.value, bound.value if bound else None),
    )


def _gap(value: float, reference: float | None) -> float:
    """The gap of a value to a reference; a value below it is so by rounding alone."""
    if reference is None:
        return math.inf
    if value <= reference:
        return 0.0
    return value / reference - 1 if reference > 0 else math.inf


def grouped(rows: Iterable[Judged], group: Callable[[Row], Group]) -> dict[Group, list[Judged]]:
    """Rows by what they have in common, in the order of the first of each."""
    found: dict[Group, list[Judged]] = {}
    for judgement in rows:
        found.setdefault(group(judgement.row), []).append(judgement)
    return found


def means(rows: Iterable[Judged]) -> list[Means]:
    """One of each method, in the order of their rows."""
    return [_means(method, of) for method, of in grouped(rows, lambda row: row.method).items()]


def _means(method: str, rows: Sequence[Judged]) -> Means:
    fit = [judgement for judgement in rows if judgement.row.feasible]
    gaps = [judgement.gap for judgement in fit]
    bound_gaps = [j.bound_gap for j in fit if math.isfinite(j.bound_gap)]
    return Means(
        method,
        runs=len(rows),
        refused=sum(bool(judgement.row.refused) for judgement in rows),
        fit=len(fit),
        reached=sum(gap <= ROUNDED for gap in gaps),
        mean=fmean(gaps) if gaps else math.nan,
        median=median(gaps) if gaps else math.nan,
        worst=max(gaps, default=math.nan),
        bound_mean=fmean(bound_gaps) if bound_gaps else math.nan,
        seconds=fmean(judgement.row.seconds for judgement in rows),
    )
