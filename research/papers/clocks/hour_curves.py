"""Learning curves over the hours of a virtual clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from research.papers.curves import GRID, INK, PALE, svg

COLOURS = {
    ("spotlight", "paper"): "#4477AA",
    ("colocrl", "paper, prefix"): "#EE7733",
    ("spotlight", "paper, colocation"): "#AA3377",
}


def draw(path: Path, runs: Sequence[Mapping[str, Any]]) -> None:
    """Draw into an SVG file: of each run the mean of a batch, thin, and the best so far."""
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.2, 3.2), layout="constrained")
    axes = figure.subplots()
    for run in runs:
        colour = COLOURS[run["method"], run["settings"]]
        hours = run["hours_curve"]
        label = f"{run['method']}, {run['settings']}" if run["seed"] == 0 else None
        axes.plot(hours, run["mean_curve"][: len(hours)], color=colour, linewidth=0.6, alpha=0.6)
        axes.plot(hours, run["best_curve"][: len(hours)], color=colour, linewidth=1.4, label=label)
    axes.set_xlabel("hours of five machines", fontsize=8.5, color=PALE)
    axes.set_ylabel("step [s]: mean of 60, and best so far", fontsize=8.5, color=INK)
    axes.grid(color=GRID, linewidth=0.6)
    axes.tick_params(length=0, labelsize=8, colors=PALE)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    with matplotlib.rc_context({"svg.hashsalt": "situate"}):
        path.write_bytes(svg(figure))
