"""Placements drawn on the graph of the forward pass: a row a module, from the first ops to the
last, each device in a colour and the CPU white, as ColocRL's and the planner's figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from research.papers.curves import INK, PALE, svg
from research.papers.placements.placed import Placed
from situate.data.problem import Problem
from situate.data.topology import accelerators, inputs_of_ops
from situate.grouping.module_calls import runs_forward
from situate.report.pictures.op_colors import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 48
"""Cells from the first op to the last."""

LEVELS = 2
"""Parts of a module's path that a row stands for."""

ROW, WIDTH = 0.085, 3.1
"""Inches."""


def draw(path: Path, placements: Sequence[Placed]) -> None:
    """Draw placements of the whole batch into an SVG file."""
    import matplotlib
    from matplotlib.figure import Figure

    problem = placements[0].wanted.case.problem()
    names, cell = cells(problem)
    size = (WIDTH * len(placements) + 1.2, ROW * len(names) + 1.0)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, len(placements), sharey=True, squeeze=False)[0]
    for axes, placed in zip(panels, placements, strict=True):
        _panel(axes, problem, placed, cell)
    panels[0].set_yticks(np.arange(len(names)) + 0.5, names, fontsize=5.5)
    panels[0].set_ylim(len(names), 0)
    with matplotlib.rc_context({"svg.hashsalt": "situate"}):
        path.write_bytes(svg(figure))


def cells(problem: Problem) -> tuple[list[str], NDArray[np.int64]]:
    """Names of the rows, by their first op, and (n,) the cell of each op, row after row; -1 for
    ops of no module and for those that do not compute in the forward pass."""
    deep = depths(problem).tolist()
    name_of = {
        j: ".".join(op.module.split(".")[:LEVELS])
        for j, op in enumerate(problem.graph.ops)
        if op.module and runs_forward(op)
    }
    begins: dict[str, int] = {}
    for op, name in name_of.items():
        begins[name] = min(deep[op], begins.get(name, deep[op]))
    names = sorted(begins, key=begins.__getitem__)
    cell, last = np.full(problem.n, -1), max(deep[op] for op in name_of) + 1
    for op, name in name_of.items():
        cell[op] = names.index(name) * COLUMNS + deep[op] * COLUMNS // last
    return names, cell


def depths(problem: Problem) -> NDArray[np.int64]:
    """(n,) tensors on the longest way to each op from one that reads none."""
    deep, reads = np.zeros(problem.n, np.int64), inputs_of_ops(problem)
    for op in problem.graph.order:
        deep[op] = max((deep[problem.producer[t]] + 1 for t in reads[op]), default=0)
    return deep


def _boxes(
    problem: Problem, placed: Placed, cell: NDArray[np.int64]
) -> dict[int, list[tuple[float, int, int]]]:
    """By device, the top, the left and the right of its cells; neighbours of one device are one."""
    seconds = problem.seconds[np.arange(problem.n), placed.placement]
    boxes: dict[int, list[tuple[float, int, int]]] = {}
    last = (-1, -1, -1)
    for number in np.unique(cell[cell >= 0]).tolist():
        here = cell == number
        device = int(np.bincount(placed.placement[here], seconds[here]).argmax())
        row, column = divmod(number, COLUMNS)
        own = boxes.setdefault(device, [])
        left = own.pop()[1] if last == (device, row, column) else column
        own.append((row + 0.1, left, column + 1))
        last = (device, row, column + 1)
    return boxes


def _panel(axes: Axes, problem: Problem, placed: Placed, cell: NDArray[np.int64]) -> None:
    """Cells in the colour of the device that has most of their seconds, one path a device."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    gpus = accelerators(problem)
    for device, boxes in _boxes(problem, placed, cell).items():
        corners = [[(a, y), (b, y), (b, y + 0.8), (a, y + 0.8)] for y, a, b in boxes]
        colour = PALETTE[gpus.index(device)] if device in gpus else "white"
        path = Outline.make_compound_path_from_polys(np.array(corners))
        axes.add_patch(PathPatch(path, facecolor=colour, edgecolor=PALE, linewidth=0.3))
    axes.set_xlim(0, COLUMNS)
    axes.set_xticks([])
    axes.set_title(placed.wanted.name, fontsize=8, color=INK)
    axes.tick_params(length=0, colors=PALE)
    for side in axes.spines.values():
        side.set_visible(False)
