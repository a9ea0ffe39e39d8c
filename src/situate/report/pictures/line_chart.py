"""Lines by name on panels, three a row, a colour a name, with one legend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from situate.data.arrays import Floats
from situate.errors import MissingExtra
from situate.files.atomic import write_bytes
from situate.report.pictures.formats import fitting, format_of, image
from situate.report.pictures.op_colors import GRID, INK, PALE, PALETTE
from situate.report.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3
"""Most panels side by side."""
WIDE, HIGH = 4.0, 2.9
MARGIN_LEFT, MARGIN_RIGHT, MARGIN_TOP, MARGIN_BOTTOM = 0.95, 1.8, 1.2, 0.65
BESIDE, BELOW = 0.75, 0.95
"""Inches: a panel, the margins around all panels, the gaps between them. The legend is on the
right."""
DOTS_PER_INCH = 144
DASHES = ("-", "--", ":", "-.")
"""Styles of lines, the next one once all colours are taken."""

Line = tuple[Floats, Floats]


@dataclass(frozen=True)
class Panel:
    """The lines of one panel, x (k,) and y (k,) by name; constant from each point to the next."""

    title: str
    lines: Mapping[str, Line]


@dataclass(frozen=True)
class Scales:
    """The axes of all panels.

    Attributes:
        x_label, y_label: texts beside the axes.
        x_limits, y_limits: (lower, upper) ends of the axes.
        prepare: sets scales and ticks on matplotlib's axes.
    """

    x_label: str
    y_label: str
    x_limits: tuple[float, float]
    y_limits: tuple[float, float]
    prepare: Callable[[Axes], None]


def draw(panels: Sequence[Panel], scales: Scales, path: str | Path, title: str, about: str) -> None:
    """Draw panels into an SVG or PNG file, whichever the suffix of `path` says.

    Args:
        panels: at least one.
        scales: of all of them.
        path: of the file.
        title, about: the lines above them.

    Raises:
        SituateError: another suffix, or `path` cannot be written.
        MissingExtra: matplotlib is not installed.
    """
    form = format_of(path)
    write_bytes(path, image(_figure(panels, scales, title, about), form, DOTS_PER_INCH))


def _figure(panels: Sequence[Panel], scales: Scales, title: str, about: str) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "report") from None
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // COLUMNS)
    width = MARGIN_LEFT + columns * WIDE + (columns - 1) * BESIDE + MARGIN_RIGHT
    height = MARGIN_TOP + rows * HIGH + (rows - 1) * BELOW + MARGIN_BOTTOM
    figure = Figure(figsize=(width, height), facecolor="white")
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    for number, panel in enumerate(panels):
        row, column = divmod(number, COLUMNS)
        left_edge = MARGIN_LEFT + column * (WIDE + BESIDE)
        bottom = height - MARGIN_TOP - HIGH - row * (HIGH + BELOW)
        box = (left_edge / width, bottom / height, WIDE / width, HIGH / height)
        axes = figure.add_axes(box)
        _draw_panel(axes, panel, scales, names)
        if column == 0:
            axes.set_ylabel(scales.y_label, color=PALE, fontsize=9)
        if number == columns - 1:
            _legend(axes)
    _headline(figure, title, about)
    return figure


def _draw_panel(axes: Axes, panel: Panel, scales: Scales, names: list[str]) -> None:
    scales.prepare(axes)
    axes.set_xlim(*scales.x_limits)
    axes.set_ylim(*scales.y_limits)
    for number, name in enumerate(names):
        x, y = panel.lines.get(name, ([], []))
        color, dash = PALETTE[number % len(PALETTE)], DASHES[number // len(PALETTE) % len(DASHES)]
        label = printable(name, 24)
        axes.plot(
            x, y, color=color, linestyle=dash, linewidth=1.8, drawstyle="steps-post", label=label
        )  # fmt: skip
    axes.set_title(panel.title, loc="left", fontsize=10, color=INK, parse_math=False)
    axes.set_xlabel(scales.x_label, color=PALE, fontsize=9)
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", length=0, labelsize=8.5, colors=PALE)
    for side in axes.spines.values():
        side.set_visible(False)


def _legend(axes: Axes) -> None:
    """Beside the last panel."""
    legend = axes.legend(
        loc="upper left", bbox_to_anchor=(1.03, 1.02), frameon=False, borderaxespad=0.0,
        fontsize=9, handlelength=2.4,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)
        text.set_color(INK)


def _headline(figure: Figure, title: str, about: str) -> None:
    width, height = figure.get_size_inches().tolist()
    x, room = MARGIN_LEFT / width, 72 * (width - MARGIN_LEFT) - 12
    figure.text(
        x, 1 - 0.36 / height, fitting(title, 120, 13, room, "bold"),
        fontsize=13, fontweight="bold", color=INK, parse_math=False,
    )  # fmt: skip
    figure.text(x, 1 - 0.63 / height, fitting(about, 160, 9.5, room), fontsize=9.5, color=PALE)
