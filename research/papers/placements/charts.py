"""Load and copies as bars, a placement beside the other, as ColocRL's figures have them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from research.papers.curves import GRID, INK, PALE, svg
from research.papers.placements.placed import Placed
from research.papers.placements.shares import COPIES
from situate.report.pictures.op_colors import PHASES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHT, WIDTH = 2.7, 1.75
"""Inches of a panel."""

COLOURS = dict(zip(COPIES, ("#AA3377", "#66CCEE"), strict=True))


def load(path: Path, placements: Sequence[Placed]) -> None:
    """Draw seconds of each device into an SVG file: forward below, backward on it, then updates."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH * len(placements) + 0.5, HEIGHT), layout="constrained")
    panels = figure.subplots(1, len(placements), sharey=True, squeeze=False)[0]
    for axes, placed in zip(panels, placements, strict=True):
        columns = {phase: [row[phase] for row in placed.load] for phase in PHASES}
        _stack(axes, [row["device"] for row in placed.load], columns, PHASES)
        axes.set_title(_title(placed), fontsize=8, color=INK)
    _finish(path, figure, panels[0], "computes [s]")


def copies(path: Path, placements: Sequence[Placed]) -> None:
    """Draw seconds on links into an SVG file, by kind of copy."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.05 * len(placements) + 2.2, HEIGHT), layout="constrained")
    axes = figure.subplots()
    kinds = {kind: [_seconds(placed, kind) for placed in placements] for kind in COPIES}
    _stack(axes, [_title(placed) for placed in placements], kinds, COLOURS)
    _finish(path, figure, axes, "copies [s]")


def _seconds(placed: Placed, kind: str) -> float:
    return float(sum(row["seconds"] for row in placed.copies if row["kind"] == kind))


def _title(placed: Placed) -> str:
    """Such as `post, paper` over its seconds."""
    seconds = placed.summary["seconds"]
    title = placed.wanted.name.replace(", ", "\n").replace(" ", "\n")
    return f"{title}\n{'OOM' if seconds is None else f'{seconds:.3f} s'}"


def _stack(
    axes: Axes, names: Sequence[str], columns: dict[str, list[float]], colours: dict[str, str]
) -> None:
    bottom = np.zeros(len(names))
    for what, values in columns.items():
        axes.bar(names, values, 0.7, bottom=bottom, color=colours[what], label=what)
        bottom += values
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=7, colors=PALE)
    for side in axes.spines.values():
        side.set_visible(False)


def _finish(path: Path, figure: Figure, first: Axes, label: str) -> None:
    import matplotlib

    first.set_ylabel(label, fontsize=8.5, color=PALE)
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=7.5)
    with matplotlib.rc_context({"svg.hashsalt": "situate"}):
        path.write_bytes(svg(figure))
