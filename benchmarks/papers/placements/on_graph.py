"""Placements drawn on the graph of the forward pass: a row a module, from the first ops to the
last, each device in a colour and the CPU white, as ColocRL's and the planner's figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.curves import INK, PALE, svg
from benchmarks.papers.placements.placed import Placed
from situate.data.problem import Problem
from situate.data.topology import accelerators, inputs_of_ops
from situate.report.pictures.op_colors import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 48
"""Cells from the first op to the last."""

LEVELS = 2
"""Parts of a module's path that a row stands for."""

ROW, WIDTH = 0.085, 3.1
"""Inches."""


def draw(path: Path, found: Sequence[Placed]) -> None:
    """Draw into an SVG file those that place the whole batch."""
    import matplotlib
    from matplotlib.figure import Figure

    problem = found[0].wanted.case.problem()
    whole = [placed for placed in found if len(placed.placement) == problem.n]
    names, cell = cells(problem)
    size = (WIDTH * len(whole) + 1.2, ROW * len(names) + 1.0)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, len(whole), sharey=True, squeeze=False)[0]
    for axes, placed in zip(panels, whole, strict=True):
        _panel(axes, problem, placed, cell)
    panels[0].set_yticks(np.arange(len(names)) + 0.5, names, fontsize=5.5)
    panels[0].set_ylim(len(names), 0)
    with matplotlib.rc_context({"svg.hashsalt": "situate"}):
        path.write_bytes(svg(figure))


def cells(problem: Problem) -> tuple[list[str], NDArray[np.int64]]:
    """Names of the rows, and (n,) the cell of each op, counted row by row; -1 for ops of no module
    and of other passes."""
    ops, deep = problem.graph.ops, depths(problem)
    shown = [op.phase == "forward" and bool(op.module) for op in ops]
    row_of: dict[str, int] = {}
    cell = np.full(problem.n, -1)
    last = max(deep[j] for j in range(problem.n) if shown[j]) + 1
    for op in problem.graph.order:
        if shown[op]:
            name = ".".join(ops[op].module.split(".")[:LEVELS])
            row = row_of.setdefault(name, len(row_of))
            cell[op] = row * COLUMNS + deep[op] * COLUMNS // last
    return list(row_of), cell


def depths(problem: Problem) -> NDArray[np.int64]:
    """(n,) tensors on the longest way to each op from one that reads none."""
    deep, reads = np.zeros(problem.n, np.int64), inputs_of_ops(problem)
    for op in problem.graph.order:
        deep[op] = max((deep[problem.producer[t]] + 1 for t in reads[op]), default=0)
    return deep


def _panel(axes: Axes, problem: Problem, placed: Placed, cell: NDArray[np.int64]) -> None:
    """A rectangle a cell, in the colour of the device that has most of its seconds."""
    from matplotlib.patches import Rectangle

    seconds = problem.seconds[np.arange(problem.n), placed.placement]
    gpus = accelerators(problem)
    for number in np.unique(cell[cell >= 0]).tolist():
        here = cell == number
        device = int(np.bincount(placed.placement[here], seconds[here]).argmax())
        row, column = divmod(number, COLUMNS)
        colour = PALETTE[gpus.index(device)] if device in gpus else "white"
        axes.add_patch(Rectangle((column, row + 0.1), 0.9, 0.8, fc=colour, ec=PALE, lw=0.15))
    axes.set_xlim(0, COLUMNS)
    axes.set_xticks([])
    axes.set_title(placed.wanted.name, fontsize=8, color=INK)
    axes.tick_params(length=0, colors=PALE)
    for side in axes.spines.values():
        side.set_visible(False)
