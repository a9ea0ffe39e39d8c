"""A plan as one picture: devices over time, transfers between them, memory under its limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from situate.data.problem import Problem
from situate.data.problem_arrays import UNLIMITED
from situate.errors import MissingExtra
from situate.files.atomic import write_bytes
from situate.report.computing_time import check_times, computing_time
from situate.report.pictures.formats import fitting, format_of, image, width_of
from situate.report.pictures.memory_chart import (
    DASHES,
    FLOOR,
    LIMIT,
    LIVE,
    OVER,
    PERSISTENT,
    ROOM,
    draw_memory,
)
from situate.report.pictures.op_colors import GRID, INK, PALE, OpColors, op_colors
from situate.report.pictures.timeline import (
    DOTS_PER_INCH,
    LOWER,
    UPPER,
    WIRE,
    draw_ops,
    draw_transfers,
)
from situate.report.text import plural, printable
from situate.report.units import gap_text, time_scale, time_text
from situate.schedule.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 13.0
"""Inches."""
MARGIN_LEFT, MARGIN_RIGHT, MARGIN_TOP, SPACE_BETWEEN, MARGIN_BOTTOM = 1.5, 1.35, 1.1, 0.5, 0.55
"""Margins in inches."""
MAX_DEVICES_SHOWN_WHOLE = 8
"""Most devices for which every device has a lane with its busy share."""
WIDE = WIDTH - MARGIN_LEFT - MARGIN_RIGHT
"""Width of the axes in inches."""
TITLE, KEY, COLUMNS, BESIDE = 13.0, 8.0, 6, 29.0
"""Font sizes of title and keys in points, most keys in a row, and a key's width beside its text in
points."""


@dataclass(frozen=True)
class Heading:
    """The text above the lanes, besides the makespan.

    Args:
        title: default: the graph on the cluster.
        lower_bound: on the makespan, in the graph's unit of time.
        gap: how far the makespan is above it, as a fraction of it.
        method: name of the solver.
    """

    title: str | None = None
    lower_bound: float | None = None
    gap: float | None = None
    method: str | None = None


def draw(
    problem: Problem,
    schedule: Schedule,
    path: str | Path,
    title: str | None = None,
    lower_bound: float | None = None,
    gap: float | None = None,
    method: str | None = None,
) -> None:
    """Draw `schedule` into an SVG or PNG file, whichever the suffix of `path` says.

    Args:
        title: default: the graph on the cluster.
        lower_bound: on the makespan, in the graph's unit of time.
        gap: how far the makespan is above it, as a fraction of it.
        method: name of the solver.

    Raises:
        SituateError: another suffix, or `path` cannot be written.
        MissingExtra: matplotlib is not installed.
    """
    form = format_of(path)
    heading = Heading(title, lower_bound, gap, method)
    write_bytes(path, render(problem, schedule, form, heading))


def render(problem: Problem, schedule: Schedule, form: str, heading: Heading = Heading()) -> bytes:
    """The picture as the bytes of an `svg` or `png` file.

    Raises:
        MissingExtra: matplotlib is not installed.
        ScheduleError: the schedule never ends.
    """
    check_times(schedule)
    return image(_figure(problem, schedule, heading), form, DOTS_PER_INCH)


def _figure(problem: Problem, schedule: Schedule, heading: Heading) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "report") from None
    rows = _rows(problem, schedule)
    body = len(rows) * _lane(len(rows))
    below = MARGIN_BOTTOM + (SPACE_BETWEEN + body if schedule.peak.any() else 0.0)
    height = MARGIN_TOP + body + below
    figure = Figure(figsize=(WIDTH, height), facecolor="white")
    lanes = figure.add_axes((MARGIN_LEFT / WIDTH, below / height, WIDE / WIDTH, body / height))
    _draw_lanes(lanes, problem, schedule, rows)
    _headline(figure, problem, schedule, heading, height)
    lowest = lanes
    if schedule.peak.any():
        lanes.tick_params(labelbottom=False)
        lowest = figure.add_axes(
            (MARGIN_LEFT / WIDTH, MARGIN_BOTTOM / height, WIDE / WIDTH, body / height)
        )
        _draw_memory(lowest, problem, schedule, rows)
    lowest.set_xlabel(_time_label(problem, schedule), color=PALE, fontsize=8.5)
    return figure


def _draw_lanes(axes: Axes, problem: Problem, schedule: Schedule, rows: list[int]) -> None:
    colours = op_colors(problem.graph.ops, schedule.end - schedule.start)
    draw_ops(axes, problem, schedule, colours, WIDE * DOTS_PER_INCH, rows)
    draw_transfers(axes, schedule, WIDE * DOTS_PER_INCH, rows)
    _frame(axes, problem, schedule, rows)
    busy = computing_time(problem, schedule) / _span(schedule)
    notes = [f"{100 * busy[device]:.0f} % busy" for device in rows]
    _device_names(axes, problem, rows, notes, (UPPER + LOWER) / 2)
    _legend(axes, colours, len(schedule.tensor))


def _draw_memory(axes: Axes, problem: Problem, schedule: Schedule, rows: list[int]) -> None:
    draw_memory(axes, problem, schedule, int(WIDE * DOTS_PER_INCH), rows)
    _frame(axes, problem, schedule, rows)
    _device_names(axes, problem, rows, [""] * len(rows), FLOOR - ROOM / 2)
    _memory_legend(axes, problem, bool((schedule.peak > problem.capacity).any()))


def _rows(problem: Problem, schedule: Schedule) -> list[int]:
    """Devices to draw: all if there are few, else only those in use."""
    in_use = set(schedule.placement.tolist()) | set(np.flatnonzero(schedule.peak).tolist())
    return list(range(problem.d)) if problem.d <= MAX_DEVICES_SHOWN_WHOLE else sorted(in_use)


def _lane(count: int) -> float:
    """Height of one of `count` lanes in inches."""
    if count <= 4:
        return 0.62
    return max(0.3, 2.6 / count) if count <= 24 else max(0.16, 7.2 / count)


def _device_names(
    axes: Axes, problem: Problem, rows: list[int], notes: list[str], middle: float
) -> None:
    names = [printable(problem.cluster.names[device], 18) for device in rows]
    size = min(9.0, 0.7 * 72 * _lane(len(rows)))
    size *= min(1.0, (72 * MARGIN_LEFT - 12) / max(width_of(name, size) for name in names))
    for row, (name, note) in enumerate(zip(names, notes, strict=True)):
        noted = bool(note) and len(rows) <= MAX_DEVICES_SHOWN_WHOLE
        place: dict[str, Any] = {
            "xy": (0, row + middle), "xycoords": ("axes fraction", "data"), "ha": "right",
            "textcoords": "offset points", "parse_math": False,
        }  # fmt: skip
        va = "bottom" if noted else "center"
        axes.annotate(name, xytext=(-8, noted), va=va, fontsize=size, color=INK, **place)
        if noted:
            axes.annotate(note, xytext=(-8, -1), va="top", fontsize=7, color=PALE, **place)


def _frame(axes: Axes, problem: Problem, schedule: Schedule, rows: list[int]) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    span = _span(schedule)
    scale, _ = time_scale(span, problem.graph.unit)
    # Ticks at round numbers of the unit that is shown, not of the graph's.
    ticks = [tick * scale for tick in MaxNLocator(10).tick_values(0, span / scale)]
    axes.set_xlim(0, span)
    axes.set_ylim(len(rows), 0)
    axes.set_yticks([])
    axes.set_xticks([tick for tick in ticks if tick <= span])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / scale:,.6g}"))
    axes.grid(axis="x", color=GRID, linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=8, colors=PALE)
    for side in axes.spines.values():
        side.set_visible(False)


def _span(schedule: Schedule) -> float:
    return schedule.makespan if schedule.makespan > 0 else 1.0


def _time_label(problem: Problem, schedule: Schedule) -> str:
    _, name = time_scale(_span(schedule), problem.graph.unit)
    return f"time [{name}]" if name else "time, in the graph's own unit"


def _headline(
    figure: Figure, problem: Problem, schedule: Schedule, heading: Heading, height: float
) -> None:
    title = heading.title or f"{problem.graph.name} on {problem.cluster.name}"
    x = MARGIN_LEFT / WIDTH
    figure.text(
        x, 1 - 0.34 / height, fitting(title, 90, TITLE, 72 * (WIDTH - MARGIN_LEFT) - 12, "bold"),
        fontsize=TITLE, fontweight="bold", color=INK, parse_math=False,
    )  # fmt: skip
    figure.text(
        x, 1 - 0.6 / height, _subtitle(problem, schedule, heading), fontsize=9.5,
        color=PALE, parse_math=False,
    )  # fmt: skip


def _subtitle(problem: Problem, schedule: Schedule, heading: Heading) -> str:
    unit = problem.graph.unit
    parts = [f"makespan {time_text(schedule.makespan, unit)}"]
    if heading.lower_bound is not None and math.isfinite(heading.lower_bound):
        parts.append(f"lower bound {time_text(heading.lower_bound, unit)}")
    if heading.gap is not None and math.isfinite(heading.gap):
        parts.append("optimal" if heading.gap == 0 else f"gap {gap_text(heading.gap)}")
    devices = len(set(schedule.placement.tolist()))
    parts.append(f"{plural(problem.n, 'op')} on {devices} of {plural(problem.d, 'device')}")
    if heading.method:
        parts.append(printable(heading.method, 30))
    over = (schedule.peak > problem.capacity).any()
    return "  ·  ".join([*parts, *["does not fit in memory"] * bool(over)])


def _legend(axes: Axes, colours: OpColors, transfers: int) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    names = [*colours.labels, *["later slices"] * (len(colours.colors) > len(colours.labels))]
    # The last shade stands for all of them.
    key_colors = [*colours.colors[: len(colours.labels)], colours.colors[-1]][: len(names)]
    keys: list[Artist] = [Patch(color=color) for color in key_colors]
    columns = min(len(names) + bool(transfers), COLUMNS)
    room = 72 * (MARGIN_LEFT + WIDE) / columns - BESIDE
    labels = [fitting(label, 18, KEY, room) for label in names]
    if transfers:
        keys.append(Line2D([], [], color=WIRE, linewidth=3))
        labels.append("receives a transfer")
    _keys(axes, keys, labels)


def _memory_legend(axes: Axes, problem: Problem, over: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    keys: list[Artist] = [Patch(color=PERSISTENT), Patch(color=LIVE)]
    labels = ["held for the whole step", "tensors and workspace"]
    if over:
        keys.append(Patch(color=OVER))
        labels.append("above the limit")
    if (problem.capacity < UNLIMITED).any():
        keys.append(Line2D([], [], color=LIMIT, linewidth=0.8, linestyle=DASHES))
        labels.append("limit")
    axes.set_title("memory", loc="left", fontsize=9.5, color=PALE, pad=4)
    _keys(axes, keys, labels)


def _keys(axes: Axes, keys: list[Artist], labels: list[str]) -> None:
    legend = axes.legend(
        keys, labels, loc="lower right", ncols=min(len(labels), COLUMNS),
        bbox_to_anchor=(1, 1), frameon=False, borderaxespad=0.5,
        fontsize=KEY, handlelength=1.3, handleheight=0.9, columnspacing=1.4, borderpad=0,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)
        text.set_color(PALE)
