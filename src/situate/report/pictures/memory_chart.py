"""Each device's memory over time, under the line of its limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.data.problem_arrays import UNLIMITED
from situate.report.pictures.op_colors import INK, PALE
from situate.report.residency import Residency, residency
from situate.report.units import size_text
from situate.schedule.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FLOOR, ROOM = 0.92, 0.72
"""Position of zero within a lane of height 1, and the height of the tallest value."""
DASHES = (0, (6, 2))
LIVE, PERSISTENT, OVER, LIMIT = "#8AB4D8", "#4F7CAC", "#D93025", INK


def draw_memory(
    axes: Axes, problem: Problem, schedule: Schedule, pixels: int, rows: Sequence[int]
) -> None:
    """Draw one area a device; its scale runs from zero to its limit, or to its peak if higher.

    `rows` are the devices from top to bottom, `pixels` the width of the axes.
    """
    memory = residency(problem, schedule)
    tallest = float(max(schedule.peak.max(), 1))
    for row, device in enumerate(rows):
        peak, capacity = int(schedule.peak[device]), int(problem.capacity[device])
        limit = None if capacity >= UNLIMITED else capacity
        top = float(max(peak, limit)) if limit else tallest
        _area(axes, _curve(memory, schedule, device, pixels), row, top, limit)
        persistent = int(problem.persistent[schedule.placement == device].sum())
        persistent = min(persistent, limit or persistent)
        span = np.array([0.0, schedule.makespan or 1.0])
        _fill(axes, span, np.full(2, persistent), row, top, PERSISTENT, 1.2)
        if limit:
            line = FLOOR + row - ROOM * limit / top
            axes.axhline(line, color=LIMIT, linewidth=0.8, linestyle=DASHES, zorder=4)
        axes.axhline(FLOOR + row, color="#BDC1C6", linewidth=0.6, zorder=3)
        _annotate(axes, row + FLOOR - ROOM / 2, peak, limit, one_line=len(rows) > 8)


def _curve(
    memory: Residency, schedule: Schedule, device: int, pixels: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Use over seconds, thinned where there are more instants than the pixels can show."""
    instants, use = memory.use(device)
    instants = memory.time(instants)
    if len(instants) <= 2 * pixels:
        return instants, use
    # A step of no time still needs pixels of some width.
    return _thinned(instants, use, max(schedule.makespan, np.nextafter(0, 1)) / pixels)


def _thinned(
    instants: NDArray[np.float64], use: NDArray[np.int64], width: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The largest use within each pixel of `width` seconds, then the last use at its end."""
    pixel, first = np.unique(np.floor(instants / width), return_index=True)
    end = np.minimum((pixel + 1) * width, instants[-1])
    # The last instant of a pixel is just before the first of the next.
    last = use[np.append(first[1:], len(use)) - 1]
    heights = np.stack((np.maximum.reduceat(use, first), last), -1)
    return np.stack((instants[first], end), -1).ravel(), heights.ravel()


def _area(
    axes: Axes,
    curve: tuple[NDArray[np.float64], NDArray[np.int64]],
    row: int,
    top: float,
    limit: int | None,
) -> None:
    instants, use = curve
    if not len(instants):
        return
    if limit is not None and use.max() > limit:
        _fill(axes, instants, use, row, top, OVER, 1.0)
        use = np.minimum(use, limit)
    _fill(axes, instants, use, row, top, LIVE, 1.1)


def _fill(
    axes: Axes,
    instants: NDArray[np.float64],
    use: NDArray[np.int64],
    row: int,
    top: float,
    color: str,
    order: float,
) -> None:
    axes.fill_between(
        instants,
        FLOOR + row,
        FLOOR + row - ROOM * use / top,
        step="post",
        color=color,
        linewidth=0,
        zorder=order,
    )


def _annotate(axes: Axes, middle: float, peak: int, limit: int | None, one_line: bool) -> None:
    text = f"peak {size_text(peak)}" + (f"\nof {size_text(limit)}" if limit else "")
    if limit and one_line:
        text = f"{size_text(peak)} of {size_text(limit)}"
    axes.annotate(
        text, (1, middle), (6, 0), xycoords=("axes fraction", "data"),
        textcoords="offset points", ha="left", va="center", fontsize=7 if one_line else 7.5,
        color=OVER if limit is not None and peak > limit else PALE,
    )  # fmt: skip
