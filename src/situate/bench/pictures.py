"""Pictures of a benchmark: performance profiles, and the median gap over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from situate.bench.profiles import FIRST, gaps_over_time, profiles
from situate.bench.summary import RowGap, group_rows
from situate.data.arrays import Floats
from situate.report.pictures.line_chart import Line, Panel, Scales, draw
from situate.report.text import plural, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    """Curves over time, with what is too small for a logarithm at the picture's edge."""
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
