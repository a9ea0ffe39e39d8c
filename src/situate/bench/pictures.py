"""Pictures of a benchmark: performance profiles, and the mean gap over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from situate.bench.profiles import FIRST, LARGEST_GAP, gaps_over_time, profiles
from situate.bench.summary import Judged, grouped
from situate.report.pictures.line_chart import Line, Panel, Scales, draw
from situate.report.text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_GAP = 1e-4
"""Gaps up to this, as a fraction, are at the edge of a picture."""


def draw_profiles(rows: Sequence[Judged], path: str | Path) -> None:
    """Draw a panel of profiles for each time limit, as `line_chart.draw` does."""
    limits = grouped(rows, lambda row: row.time_limit)
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


def draw_gaps(rows: Sequence[Judged], path: str | Path) -> None:
    """Draw the mean gap over time, as `line_chart.draw` does."""
    lines = gaps_over_time(rows)
    last = max((float(x[-1]) for x, _ in lines.values()), default=1.0)
    scales = Scales(
        "seconds of search",
        "mean gap to the best known",
        (FIRST, last),
        (LEAST_GAP, 1.05 * LARGEST_GAP),
        _time_axes,
    )
    about = f"{_about(rows)}; without a plan that fits a gap of 100 %, the largest that counts"
    draw([Panel("", lines)], scales, path, "Gap over time", about)


def _about(rows: Sequence[Judged]) -> str:
    problems = len({judgement.row.problem for judgement in rows})
    families = dict.fromkeys(judgement.row.family for judgement in rows)
    return f"{plural(problems, 'instance')} of {', '.join(families)}"


def _from_zero(gaps: np.ndarray, share: np.ndarray) -> Line:
    """A profile from the left edge of the picture to its right one."""
    ends = LEAST_GAP / 2, LARGEST_GAP
    x = np.concatenate(([ends[0]], np.maximum(gaps, ends[0]), [max(ends[1], *gaps, 0.0)]))
    return x, np.concatenate(([0.0], share, share[-1:] if len(share) else [0.0]))


def _profile_axes(axes: Axes) -> None:
    _logarithmic(axes, "x")
    _percent(axes, "y")


def _time_axes(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    _logarithmic(axes, "y")


def _logarithmic(axes: Axes, which: str) -> None:
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    _percent(axes, which)


def _percent(axes: Axes, which: str) -> None:
    from matplotlib.ticker import FuncFormatter

    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
