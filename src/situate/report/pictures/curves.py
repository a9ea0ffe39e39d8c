"""Learning curves as a picture: step time against placements measured, one colour a method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from situate.data.arrays import Floats
from situate.errors import MissingExtra
from situate.files.atomic import write_bytes
from situate.report.learning_curve import WINDOW, Curve
from situate.report.pictures.formats import fitting, format_of, image
from situate.report.pictures.op_colors import GRID, INK, OTHER, PALE, PALETTE
from situate.report.text import printable
from situate.report.units import time_scale, time_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


# The lines of a picture of learning: methods over samples, levels, shares of failures.
MAX_POINTS = 1500
"""Most points of one line."""
LOG_SCALE_RATIO = 2.0
"""Ratio of the largest to the smallest time from which the axis is logarithmic."""
AXIS_LIMIT = 1e100
"""Largest value on an axis; its inverse is the least of a logarithmic one."""
GREYS = (INK, PALE, OTHER)
DASHES: tuple[Any, ...] = ((0, (6, 2)), (0, (3, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))


def draw_times(axes: Axes, curves: Sequence[Curve], levels: Mapping[str, float], unit: str) -> None:
    """The best and the mean of each method, levels, and a legend that gives their last values."""
    lines: list[tuple[float, str, Line2D]] = []
    for i, curve in enumerate(curves):
        color = PALETTE[i % len(PALETTE)]
        _plot(axes, curve.mean, color=color, linewidth=0.9, alpha=0.65)
        line = _plot(axes, curve.best, color=color, linewidth=2.0, drawstyle="steps-post")
        lines.append((_last(curve.best), curve.name, line))
    for i, (name, level) in enumerate(levels.items()):
        grey, dashes = GREYS[i // len(DASHES) % len(GREYS)], DASHES[i % len(DASHES)]
        line = axes.axhline(level, color=grey, linewidth=1.1, linestyle=dashes, zorder=1.5)
        lines.append((level, name, line))
    _scale(axes, [value for value, _, _ in lines], curves, unit)
    _legend(axes, sorted(lines, key=lambda line: line[0]), unit)


def draw_failures(axes: Axes, curves: Sequence[Curve]) -> None:
    """The share of the last samples that failed, method by method."""
    for i, curve in enumerate(curves):
        _plot(axes, 100 * curve.failed, color=PALETTE[i % len(PALETTE)], linewidth=0.9)
    axes.set_ylim(0, 100)
    axes.set_yticks([0, 50, 100])
    axes.set_ylabel("failed [%]", color=PALE, fontsize=9)


def _plot(axes: Axes, values: Floats, **style: Any) -> Line2D:
    """Plot values against the number of samples, thinned to `MAX_POINTS` with the last one."""
    step = -(-len(values) // MAX_POINTS) or 1
    # Counted from the end, so that the last sample is always among the points.
    at = np.arange(len(values) - 1, -1, -step)[::-1]
    finite = np.where(np.isfinite(values), values, np.nan)
    return axes.plot(at + 1, finite[at], **style)[0]


def _last(values: Floats) -> float:
    return float(values[-1]) if values.size else np.inf


def _scale(axes: Axes, ends: list[float], curves: Sequence[Curve], unit: str) -> None:
    """Limits that hold every finite time, logarithmic where they span much."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    values = np.concatenate([ends, *(np.concatenate((c.best, c.mean)) for c in curves)])
    values = np.clip(values[np.isfinite(values)], 0.0, AXIS_LIMIT)
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    if low > 1 / AXIS_LIMIT and high / low > LOG_SCALE_RATIO:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=_ticks(high / low)))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(low / 1.07, high * 1.07)
    else:
        # Equal values have no span, and zeros no size.
        room = 0.06 * (high - low) or 0.5 * high or 1.0
        axes.set_ylim(max(0.0, low - room), high + room)
    scale, name = time_scale(low or high, unit)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y / scale:,.6g}"))
    label = f"step time [{name}]" if name else "step time, in the graph's own unit"
    axes.set_ylabel(label, color=PALE, fontsize=9)


def _ticks(ratio: float) -> Sequence[float]:
    """Multiples of powers of ten that get a tick."""
    if ratio > 1000:
        return (1.0,)
    return (1.0, 2.0, 5.0) if ratio > 10 else (1.0, 1.2, 1.5, *range(2, 10))


def _legend(axes: Axes, lines: Sequence[tuple[float, str, Line2D]], unit: str) -> None:
    """Beside the axes, the best at the bottom as in the picture."""
    labels = [_label(value, name, unit) for value, name, _ in reversed(lines)]
    legend = axes.legend(
        [line for _, _, line in reversed(lines)], labels, loc="upper left",
        bbox_to_anchor=(1.01, 1.02), frameon=False, borderaxespad=0.0, fontsize=9,
        handlelength=2.4,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)
        text.set_color(INK)


def _label(value: float, name: str, unit: str) -> str:
    ends = time_text(value, unit) if np.isfinite(value) else "none ran"
    return f"{printable(name, 24)}  {ends}"


WIDTH, HEIGHT = 11.0, 5.4
MARGIN_LEFT, MARGIN_RIGHT, MARGIN_TOP, SPACE_BETWEEN, MARGIN_BOTTOM = 0.9, 2.5, 0.95, 0.3, 0.6
"""Inches, as are the two above; right of the axes is the legend."""
FAILURE_AXIS_HEIGHT = 0.9
"""Height in inches of the lower axes, which show failures if there are any."""
DOTS_PER_INCH = 144


def draw(
    curves: Sequence[Curve],
    levels: Mapping[str, float],
    path: str | Path,
    title: str = "",
    unit: str = "s",
) -> None:
    """Draw learning curves into an SVG or PNG file, whichever the suffix of `path` says.

    Args:
        curves: one a method, in the order of their colours.
        levels: step times that do not depend on samples, by name: horizontal lines.
        path: of the file.
        title: names of the graph and the cluster.
        unit: `s`, or empty for graphs without a unit of time.

    Raises:
        SituateError: another suffix, or `path` cannot be written.
        MissingExtra: matplotlib is not installed.
    """
    form = format_of(path, "curves")
    write_bytes(path, render(curves, levels, form, title, unit))


def render(
    curves: Sequence[Curve],
    levels: Mapping[str, float],
    form: str,
    title: str = "",
    unit: str = "s",
) -> bytes:
    """The picture as the bytes of an `svg` or `png` file; arguments as those of `draw`.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    return image(_figure(curves, levels, title, unit), form, DOTS_PER_INCH)


def _figure(curves: Sequence[Curve], levels: Mapping[str, float], title: str, unit: str) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "report") from None
    figure = Figure(figsize=(WIDTH, HEIGHT), facecolor="white")
    failed = any(curve.failed.any() for curve in curves)
    below = MARGIN_BOTTOM + failed * (FAILURE_AXIS_HEIGHT + SPACE_BETWEEN)
    samples = max((len(curve.best) for curve in curves), default=0) or 1
    lowest = _axes(figure, below, HEIGHT - MARGIN_TOP - below, samples)
    draw_times(lowest, curves, levels, unit)
    if failed:
        lowest.tick_params(labelbottom=False)
        lowest = _axes(figure, MARGIN_BOTTOM, FAILURE_AXIS_HEIGHT, samples)
        draw_failures(lowest, curves)
    lowest.set_xlabel("placements measured", color=PALE, fontsize=9)
    _headline(figure, title)
    return figure


def _axes(figure: Figure, bottom: float, height: float, samples: int) -> Axes:
    from matplotlib.ticker import FuncFormatter

    width = (WIDTH - MARGIN_LEFT - MARGIN_RIGHT) / WIDTH
    axes = figure.add_axes((MARGIN_LEFT / WIDTH, bottom / HEIGHT, width, height / HEIGHT))
    axes.set_xlim(0, samples)
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", length=0, labelsize=8.5, colors=PALE)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.6g}"))
    for side in axes.spines.values():
        side.set_visible(False)
    return axes


def _headline(figure: Figure, title: str) -> None:
    x = MARGIN_LEFT / WIDTH
    legend = f"thick: the best so far  ·  thin: mean of those that ran among the last {WINDOW}"
    figure.text(
        x, 1 - 0.36 / HEIGHT, fitting(title, 90, 13, 72 * (WIDTH - MARGIN_LEFT) - 12, "bold"),
        fontsize=13, fontweight="bold", color=INK, parse_math=False,
    )  # fmt: skip
    figure.text(x, 1 - 0.63 / HEIGHT, legend, fontsize=9.5, color=PALE)
