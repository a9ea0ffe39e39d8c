"""Ops as boxes in one lane a device, transfers as lines between the lanes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.report.computing_time import covered
from situate.report.pictures.op_colors import OpColors
from situate.report.text import printable
from situate.schedule.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UPPER, LOWER = 0.08, 0.72
"""Edges of the boxes within a lane of height 1; transfers arrive in the strip below."""
STRIP = (0.76, 0.90)
WIRE = "#8949BF"
Indices = NDArray[np.int64]

EMPTY = "#F1F3F4"
BOXES_PER_PATH = 500
"""Boxes a path: Agg refuses paths of too many cells."""
CHARACTER_WIDTH = 4.1
"""Width of a label's character in points at LABEL_SIZE size, about."""
LABEL_SIZE = 7.0
MAX_LABELS = 50
"""Most labels in a lane."""
DOTS_PER_INCH = 150
"""Pixels an inch."""
MIN_SECONDS = 1e-290
"""Seconds of a step below which fractions of it are no longer numbers."""
MIN_NAME_LENGTH = 9
"""Least characters of a shortened name that is still readable."""
MAX_LINES = 400
"""Most transfers with lines between lanes; more lines would hide the picture."""


def draw_ops(
    axes: Axes,
    problem: Problem,
    schedule: Schedule,
    colors: OpColors,
    pixels: float,
    rows: Sequence[int],
) -> None:
    """Draw lanes and ops; `rows` are the devices from top to bottom, `pixels` the axes' width."""
    pixel = max(schedule.makespan, MIN_SECONDS) / pixels
    for row, device in enumerate(rows):
        axes.axhspan(row + UPPER, row + LOWER, color=EMPTY, linewidth=0, zorder=0.5)
        device_ops = np.flatnonzero(schedule.placement == device)
        bands = _bands(schedule, colors, device_ops)
        for k, (color, band) in enumerate(zip(colors.colors, bands, strict=True)):
            ops = device_ops[colors.of[device_ops] == k]
            span = row + band[0], row + band[1]
            _boxes(axes, schedule.start[ops], schedule.end[ops], color, pixel, span)
        # Names have room where colours do not share the height of the lane.
        if len(set(bands)) == 1:
            for op, text in _fitting(problem, schedule, pixel, device_ops):
                _label(axes, schedule, op, text, row + (UPPER + LOWER) / 2, colors.ink(op))


def _bands(schedule: Schedule, colors: OpColors, device_ops: Indices) -> list[tuple[float, float]]:
    """Upper and lower edge of the boxes of each class of a device's ops.

    Ops that run at once, as on a CPU under atomic rules, would hide one another. There the lane's
    height is divided between the classes in proportion to their work.
    """
    start, seconds = schedule.start[device_ops], (schedule.end - schedule.start)[device_ops]
    # Seconds add up to the covered time unless ops overlap; sums may differ by rounding.
    if seconds.sum() <= covered(start, schedule.end[device_ops]) * (1 + 1e-9):
        return [(UPPER, LOWER)] * len(colors.colors)
    work = np.bincount(colors.of[device_ops], seconds, len(colors.colors))
    edges = UPPER + (LOWER - UPPER) * np.append(0.0, np.cumsum(work)) / work.sum()
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def _boxes(
    axes: Axes,
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    color: str,
    pixel: float,
    span: tuple[float, float],
) -> None:
    """Draw boxes of one colour; boxes too close to tell apart become one."""
    order = np.argsort(start, kind="stable")
    start, end = merged(start[order], end[order], pixel / 4)
    # Wide boxes give up a pixel, so that a gap separates neighbours of one colour.
    _rectangles(axes, start, np.where(end - start > 4 * pixel, end - pixel, end), color, span)


def merged(
    start: NDArray[np.float64], end: NDArray[np.float64], gap: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Intervals (sorted by start), with runs of short ones merged.

    A run has intervals shorter than `gap` that are less than `gap` apart.
    """
    if not len(start):
        return start, end
    small = end - start < gap
    # The end so far: a long interval may cover several that begin later.
    reach = np.maximum.accumulate(end)
    joins = small[1:] & small[:-1] & (start[1:] - reach[:-1] < gap)
    first = np.flatnonzero(np.concatenate(([True], ~joins)))
    return start[first], np.maximum.reduceat(end, first)


def _rectangles(
    axes: Axes,
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    color: str,
    span: tuple[float, float],
) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    for i in range(0, len(start), BOXES_PER_PATH):
        a, b = start[i : i + BOXES_PER_PATH], end[i : i + BOXES_PER_PATH]
        top, bottom = np.full(len(a), span[0]), np.full(len(a), span[1])
        # (boxes, 4, 2): the corners of each box, clockwise.
        corners = np.stack(
            [np.stack(p, -1) for p in ((a, top), (b, top), (b, bottom), (a, bottom))], axis=1
        )
        path = Path.make_compound_path_from_polys(corners)
        axes.add_patch(PathPatch(path, facecolor=color, linewidth=0, zorder=2))


def _fitting(
    problem: Problem, schedule: Schedule, pixel: float, device_ops: Indices
) -> Iterator[tuple[int, str]]:
    """The ops whose boxes are wide enough for a name, widest first, with the shortened name."""
    points = (schedule.end - schedule.start)[device_ops] / pixel * 72 / DOTS_PER_INCH
    for i in np.argsort(-points, kind="stable")[:MAX_LABELS].tolist():
        op, room = int(device_ops[i]), int((points[i] - 4) / CHARACTER_WIDTH)
        # The shade of the box shows the slice.
        name = problem.graph.ops[op].name.removeprefix(f"slice{problem.graph.ops[op].slice}/")
        if room >= min(len(name), MIN_NAME_LENGTH):
            yield op, printable(name, room)[:room]


def _label(axes: Axes, schedule: Schedule, op: int, text: str, middle: float, color: str) -> None:
    axes.text(
        (schedule.start[op] + schedule.end[op]) / 2, middle, text, ha="center", va="center",
        fontsize=LABEL_SIZE, color=color, parse_math=False, clip_on=True, zorder=3,
    )  # fmt: skip


def draw_transfers(axes: Axes, schedule: Schedule, pixels: float, rows: Sequence[int]) -> None:
    """Draw transfers as bars under the receiving lane; if there are few, also as lines."""
    gap = max(schedule.makespan, MIN_SECONDS) / pixels / 4
    for row, device in enumerate(rows):
        arrivals = np.flatnonzero(schedule.target == device)
        arrivals = arrivals[np.argsort(schedule.transfer_start[arrivals], kind="stable")]
        start, end = merged(schedule.transfer_start[arrivals], schedule.transfer_end[arrivals], gap)
        _rectangles(axes, start, end, WIRE, (row + STRIP[0], row + STRIP[1]))
    if 0 < len(schedule.tensor) <= MAX_LINES:
        _lines(axes, schedule, {device: row for row, device in enumerate(rows)})


def _lines(axes: Axes, schedule: Schedule, row: dict[int, int]) -> None:
    from matplotlib.collections import LineCollection

    source = np.array([row[device] for device in schedule.source.tolist()])
    target = np.array([row[device] for device in schedule.target.tolist()])
    down = target > source
    leave = np.stack([schedule.transfer_start, source + np.where(down, LOWER, UPPER)], -1)
    arrive = np.stack([schedule.transfer_end, target + np.where(down, UPPER, LOWER)], -1)
    lines = list(np.stack([leave, arrive], axis=1))
    # The more lines there are, the paler, so that crossing ones can be told apart.
    alpha = float(np.clip(8 / np.sqrt(len(lines)), 0.35, 0.9))
    axes.add_collection(LineCollection(lines, colors=WIRE, linewidths=0.7, alpha=alpha, zorder=1.5))
