"""Learning curves as a picture: a column a case, the mean of each batch above, the best below."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from research.papers.runs import BATCH
from research.papers.tables import Results
from situate.report.pictures.formats import compact_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "policy_gradient": "#EE7733",
    "ppo": "#AA3377",
    "cross_entropy": "#006B1B",
    "post": "#4477AA",
    "spotlight": "#4477AA",
}
"""Tol's qualitative colours, as in situate's pictures."""
INK, PALE, GRID = "#202124", "#5F6368", "#DADCE0"
ROWS = {"mean_curve": f"mean of {BATCH} samples [s]", "best_curve": "best so far [s]"}


Column = tuple[str, str, str]
"""Case, settings and title."""


def draw(path: Path, results: Results, columns: Sequence[Column], methods: Sequence[str]) -> None:
    """Draw into an SVG file.

    Lines are means over the seeds, bands reach from the least to the most, dashes are the better
    of one GPU and the expert.
    """
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.6 * len(columns) + 0.4, 5.4), layout="constrained")
    grid = figure.subplots(len(ROWS), len(columns), squeeze=False, sharex=True)
    for (case, settings, title), cells in zip(columns, grid.T, strict=True):
        cells[0].set_title(title, fontsize=10, color=INK)
        for axes, curve in zip(cells, ROWS, strict=True):
            _panel(axes, results, case, methods, settings, curve)
    for axes, label in zip(grid[:, 0], ROWS.values(), strict=True):
        axes.set_ylabel(label, fontsize=8.5, color=PALE)
    grid[0, 0].legend(frameon=False, fontsize=8)
    with matplotlib.rc_context({"svg.hashsalt": "situate"}):
        path.write_bytes(svg(figure))


def svg(figure: Figure) -> bytes:
    """The figure as an SVG file without a date."""
    stream = io.BytesIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    return compact_svg(stream.getvalue())


def _panel(
    axes: Axes, results: Results, case: str, methods: Sequence[str], settings: str, curve: str
) -> None:
    for method in methods:
        runs = results.of(case, method, settings)
        if runs:
            _line(axes, method, band(runs, curve))
    axes.axhline(results.better(case), color=INK, linewidth=0.8, linestyle=(0, (6, 2)))
    _frame(axes, curve)


def band(runs: Sequence[Mapping[str, Any]], curve: str) -> NDArray[np.float64]:
    """Mean, least and most over the runs, shape (3, points); NaN before all have a plan that
    fits."""
    values = np.array([run[curve] for run in runs], np.float64)
    return np.stack((values.mean(axis=0), values.min(axis=0), values.max(axis=0)))


def _line(axes: Axes, method: str, values: NDArray[np.float64]) -> None:
    samples = BATCH * np.arange(1, values.shape[1] + 1)
    colour = COLOURS[method]
    axes.plot(samples, values[0], color=colour, linewidth=1.3, label=method.replace("_", " "))
    axes.fill_between(samples, values[1], values[2], color=colour, alpha=0.18, linewidth=0)


def _frame(axes: Axes, curve: str) -> None:
    axes.grid(color=GRID, linewidth=0.6)
    axes.tick_params(length=0, labelsize=8, colors=PALE)
    if curve == "best_curve":
        axes.set_xlabel("samples", fontsize=8.5, color=PALE)
    for side in axes.spines.values():
        side.set_visible(False)
