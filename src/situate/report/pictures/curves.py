"""Learning curves as a picture: step time against placements measured, one colour a method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from situate.errors import MissingExtra
from situate.files.atomic import write_bytes
from situate.report.learning_curve import WINDOW, Curve
from situate.report.pictures.curve_lines import draw_failures, draw_times
from situate.report.pictures.formats import format_of, image
from situate.report.pictures.op_colors import GRID, INK, PALE
from situate.report.pictures.widths import fitting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
