"""Schedules of one problem under each other, as lanes of ops coloured by their part."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from research.papers.curves import GRID, INK, PALE, svg
from situate.data.problem import Problem
from situate.report.pictures.op_colors import OTHER, PALETTE, OpColors
from situate.report.pictures.timeline import STRIP, WIRE, draw_ops, merged
from situate.schedule.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Parts = Mapping[str, str]
"""Patterns of module paths by the name of the part; the first that matches holds."""

LANE, WIDTH = 0.42, 9.6
"""Inches."""

PIXELS = 450
"""Width of the picture; boxes of less than a pixel are drawn with their neighbours."""


def draw(path: Path, problem: Problem, schedules: Mapping[str, Schedule], parts: Parts) -> None:
    """Draw schedules, by title, into an SVG file; all have the same scale of time."""
    import matplotlib
    from matplotlib.figure import Figure

    colours = shades(problem, parts)
    rows = [sorted(set(schedule.placement.tolist())) for schedule in schedules.values()]
    heights = [len(row) for row in rows]
    size = (WIDTH, LANE * sum(heights) + 0.5 * len(rows) + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(rows), sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axes, row, (title, schedule) in zip(grid, rows, schedules.items(), strict=True):
        draw_ops(axes, problem, schedule, colours, PIXELS, row)
        _draw_transfers(axes, schedule, row)
        _frame(axes, title, [problem.cluster.names[device] for device in row])
    grid[-1].set_xlim(0, max(schedule.makespan for schedule in schedules.values()))
    grid[-1].set_xlabel("time [s]", fontsize=8.5, color=PALE)
    _legend(figure, colours)
    with matplotlib.rc_context({"svg.hashsalt": "situate"}):
        path.write_bytes(svg(figure))


def shades(problem: Problem, parts: Parts) -> OpColors:
    """A colour for each part, and grey for ops of none."""
    patterns = [re.compile(pattern) for pattern in parts.values()]
    of = [
        next((i for i, pattern in enumerate(patterns) if pattern.match(op.module)), len(parts))
        for op in problem.graph.ops
    ]
    return OpColors((*parts, "other"), (*PALETTE[: len(parts)], OTHER), np.array(of))


def _draw_transfers(axes: Axes, schedule: Schedule, rows: list[int]) -> None:
    """When a device receives, as one path a lane; situate's own picture draws each transfer."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    for row, device in enumerate(rows):
        mine = np.flatnonzero(schedule.target == device)
        mine = mine[np.argsort(schedule.transfer_start[mine], kind="stable")]
        start, end = schedule.transfer_start[mine], schedule.transfer_end[mine]
        boxes = zip(*merged(start, end, schedule.makespan / PIXELS), strict=True)
        low, high = row + STRIP[0], row + STRIP[1]
        corners = [[(a, low), (b, low), (b, high), (a, high)] for a, b in boxes]
        if corners:
            path = Outline.make_compound_path_from_polys(np.array(corners))
            axes.add_patch(PathPatch(path, facecolor=WIRE, linewidth=0, zorder=2))


def _frame(axes: Axes, title: str, names: list[str]) -> None:
    axes.set_title(title, loc="left", fontsize=9.5, color=INK)
    axes.set_ylim(len(names), 0)
    axes.set_yticks(np.arange(len(names)) + 0.4, names, fontsize=8.5)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=8, colors=PALE)
    for side in axes.spines.values():
        side.set_visible(False)


def _legend(figure: Figure, colours: OpColors) -> None:
    from matplotlib.patches import Patch

    keys = [Patch(color=color) for color in (*colours.colors, WIRE)]
    labels = [*colours.labels, "receives a transfer"]
    figure.legend(
        keys, labels, loc="outside upper right", ncols=len(labels), frameon=False, fontsize=8
    )
