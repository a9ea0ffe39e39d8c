"""Simulated steps of training layouts for the terminal and for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from situate.report.tables import table
from situate.report.units import gap_text, size_text, time_text


@dataclass(frozen=True)
class SimulatedStep:
    """A layout's step by the execution model.

    Attributes:
        ops: of its graph.
        seconds: of the step in the order of the layout's program.
        best: of the best plan that a search from there found; None without a search.
        floor: lower bound on the seconds of all plans that the search may find.
        gap: distance of the best plan above the floor, as a fraction of the floor; None if memory
            does not suffice.
        peak: bytes of the fullest device, in the order of the program.
        devices: GPUs of the graph.
        gpus: GPUs of the layout, for which those of the graph stand.
    """

    ops: int
    seconds: float
    best: float | None
    floor: float
    gap: float | None
    peak: int
    devices: int
    gpus: int

    @property
    def size(self) -> str:
        """Ops of the graph, and its GPUs if they stand for more."""
        where = "" if self.devices == self.gpus else f" on {self.devices} of {self.gpus:,} GPUs"
        return f"{self.ops:,} ops{where}"


def step_text(step: SimulatedStep) -> str:
    """The figures of a step in a line."""
    text = f"{time_text(step.seconds)} in the program's order"
    if step.best is not None:
        text += f", {time_text(step.best)} after a search"
    if step.gap is not None:
        text += f", {gap_text(step.gap)} above the lower bound"
    verdict = "" if step.gap is not None else ", which does not fit"
    return f"{text}; peak {size_text(step.peak)}{verdict}; {step.size}"


def steps_table(rows: Sequence[tuple[str, float, SimulatedStep | None]]) -> Table:
    """Steps of several layouts.

    Args:
        rows: layout, seconds by the formulas, and the step; None if it has too many ops.
    """
    grid = table(
        "planned as graphs", "layout|formulas|simulated|searched|gap|peak|size", range(1, 7)
    )
    for layout, seconds, step in rows:
        cells = ("-",) * 5 if step is None else _cells(step)
        grid.add_row(Text(layout), time_text(seconds), *cells)
    return grid


def _cells(step: SimulatedStep) -> tuple[str, ...]:
    best = "-" if step.best is None else time_text(step.best)
    sizes = size_text(step.peak), step.size
    gap = "does not fit" if step.gap is None else gap_text(step.gap)
    return time_text(step.seconds), best, gap, *sizes


def step_figures(step: SimulatedStep | None) -> dict[str, Any] | None:
    """A step as plain values: seconds and bytes."""
    return None if step is None else asdict(step)
