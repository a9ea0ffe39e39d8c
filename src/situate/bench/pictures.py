"""Pictures of a benchmark: performance profiles, and the median gap over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from situate.bench.tables import RowGap, group_rows
from situate.data.arrays import Floats
from situate.report.pictures.line_chart import Line, Panel, Scales, draw
from situate.report.text import plural, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Performance profiles (E. Dolan and J. Moré, Mathematical Programming 91, 2002), and the median
# gap over time.
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
        # The gap is of the last value: value / best = value / last * last / best.
        ratio = value / last if last else 1.0
        gaps[at >= seconds] = ratio * (1 + row_gap.gap) - 1
    return gaps


LEAST_GAP, LARGEST_GAP = 1e-4, 1.0
"""The edges of a picture, as fractions: smaller gaps are at its edge, larger ones beyond it."""


def draw_profiles(rows: Sequence[RowGap], path: str | Path) -> None:
    """Draw a panel of profiles for each time limit, as `line_chart.draw` does."""
    limits = group_rows(rows, lambda row: row.time_limit)
    panels = [
        Panel(f"{limit:g} s", {name: _from_zero(*line) for name, line in profiles(of).items()})
        for limit, of in sorted(limits.items())
    ]
    scales = Scales(
        "gap to the best known",
        "share of the runs within that gap",
        (LEAST_GAP, LARGEST_GAP),
        (-0.01, 1.01),
        _profile_axes,
    )
    draw(panels, scales, path, "Performance profiles", _about(rows))


def draw_gaps(rows: Sequence[RowGap], path: str | Path) -> None:
    """Draw a panel of median gaps over time for each family, as `line_chart.draw` does."""
    families = group_rows(rows, lambda row: row.family)
    panels = [Panel(printable(family, 40), _over_time(of)) for family, of in families.items()]
    last = max(float(x[-1]) for panel in panels for x, _ in panel.lines.values())
    scales = Scales(
        "seconds of search",
        "median gap to the best known",
        (FIRST, last),
        (LEAST_GAP, LARGEST_GAP),
        _time_axes,
    )
    draw(panels, scales, path, "Gap over time", _about(rows))


def _about(rows: Sequence[RowGap]) -> str:
    problems = len({row_gap.row.problem for row_gap in rows})
    families = dict.fromkeys(row_gap.row.family for row_gap in rows)
    return f"{plural(problems, 'instance')} of {', '.join(families)}"


def _over_time(rows: Sequence[RowGap]) -> dict[str, Line]:
    """Curves over time, with gaps too small for a logarithm at the picture's edge."""
    curves = gaps_over_time(rows)
    return {name: (at, np.maximum(gaps, LEAST_GAP)) for name, (at, gaps) in curves.items()}


def _from_zero(gaps: Floats, share: Floats) -> Line:
    """A profile from the left edge of the picture to its right one."""
    ends = LEAST_GAP / 2, LARGEST_GAP
    x = np.concatenate(([ends[0]], np.maximum(gaps, ends[0]), [max(ends[1], *gaps, 0.0)]))
    return x, np.concatenate(([0.0], share, share[-1:] if len(share) else [0.0]))


def _profile_axes(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(_gap_text))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))


def _time_axes(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(_gap_text))


def _gap_text(gap: float, _: object) -> str:
    """The tick of a gap; the least stands for all that are smaller."""
    return f"{'≤ ' if gap <= LEAST_GAP else ''}{100 * gap:g} %"
