"""Performance profiles (E. Dolan and J. Moré, Mathematical Programming 91, 2002), and the median
gap over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from situate.bench.summary import RowGap, group_rows
from situate.data.arrays import Floats

FIRST, POINTS = 1e-3, 200
"""Seconds at which a curve over time begins, and its points."""


def profiles(rows: Sequence[RowGap]) -> dict[str, tuple[Floats, Floats]]:
    """For each method gaps (k,) in rising order and the share (k,) of its runs whose gap is at most
    that. Runs without a plan that fits are never among them."""
    return {method: _profile(of) for method, of in group_rows(rows, lambda row: row.method).items()}


def _profile(rows: Sequence[RowGap]) -> tuple[Floats, Floats]:
    gaps = np.sort([row_gap.gap for row_gap in rows])
    share = np.arange(1, len(gaps) + 1) / len(gaps)
    finite = np.isfinite(gaps)
    return gaps[finite], share[finite]


def gaps_over_time(rows: Sequence[RowGap]) -> dict[str, tuple[Floats, Floats]]:
    """For each method seconds (k,) and the median gap (k,) of its best plans by then, of the runs
    with the largest time limit; infinite while half of them have no plan that fits."""
    longest = max((row_gap.row.time_limit for row_gap in rows), default=FIRST)
    longest_runs = [row_gap for row_gap in rows if row_gap.row.time_limit == longest]
    at = np.geomspace(FIRST, max(longest, 2 * FIRST), POINTS)
    return {
        method: _steps(at, np.median([_gaps_at(row_gap, at) for row_gap in of], axis=0))
        for method, of in group_rows(longest_runs, lambda row: row.method).items()
    }


def _steps(at: Floats, gaps: Floats) -> tuple[Floats, Floats]:
    """The points at which a curve changes, and its two ends."""
    is_step = np.concatenate(([True], gaps[1:] != gaps[:-1]))
    is_step[-1] = True
    return at[is_step], gaps[is_step]


def _gaps_at(row_gap: RowGap, at: Floats) -> Floats:
    """The gap (k,) of the best plan that a run has after each number of seconds."""
    gaps = np.full(len(at), np.inf)
    last = row_gap.row.value
    for seconds, value in row_gap.row.history:
        ratio = value / last if last else 1.0
        gaps[at >= seconds] = ratio * (1 + row_gap.gap) - 1
    return gaps
