"""Stages of a pipeline for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from situate.report.tables import table
from situate.report.text import plural, printable
from situate.report.units import gap_text, share_text, size_text, time_text
from situate.sharding.stage_search import StagePlan
from situate.sharding.stages import Stage, StageFigures, StageProblem

COLUMNS = "stage|layers|replicas|devices each|options|time|in flight|memory"


def stage_table(problem: StageProblem, plan: StagePlan) -> RenderableType:
    """The plan's time and bound, then a line for each stage."""
    grid = Table.grid(padding=(0, 2))
    for label, value in _facts(problem, plan):
        grid.add_row(Text(label, "dim"), Text(value))
    parts: list[RenderableType] = [Text(printable(problem.name, 60), "bold"), grid]
    if plan.feasible:
        parts += [Text(), _stages(problem, plan)]
    return Group(*parts)


def _facts(problem: StageProblem, plan: StagePlan) -> list[tuple[str, str]]:
    layers, devices = plural(len(problem.layers), "layer"), plural(problem.devices, "device")
    used = sum(stage.data * stage.tensor for stage in plan.stages)
    no_stages = "none: no stages fit in memory"
    if plan.bound < float("inf"):
        no_stages = "none: the search has no stages that fit in memory"
    return [
        ("problem", f"{layers} on {devices} of {size_text(problem.memory)}"),
        ("time", f"{time_text(plan.value)} per micro-batch" if plan.feasible else no_stages),
        ("lower bound", time_text(plan.bound) if plan.bound < float("inf") else "none fit"),
        ("gap", gap_text(plan.gap)),
        ("devices", f"{used:,} of {problem.devices:,}"),
        ("search", f"{plural(plan.trials, 'trial')} in {time_text(plan.seconds)}"),
    ]


def _stages(problem: StageProblem, plan: StagePlan) -> Table:
    grid = table("", COLUMNS, (0, 2, 3, 5, 6, 7))
    for i, (stage, figures) in enumerate(zip(plan.stages, plan.figures, strict=True)):
        grid.add_row(*_cells(problem, i, stage, figures))
    return grid


def _cells(problem: StageProblem, index: int, stage: Stage, figures: StageFigures) -> list[str]:
    counts = Counter(stage.options)
    share = share_text(figures.memory / problem.memory)
    return [
        str(index),
        ranges_text(stage.layers),
        str(stage.data),
        str(stage.tensor),
        ", ".join(f"{count} {printable(name, 20)}" for name, count in sorted(counts.items())),
        time_text(figures.seconds),
        str(figures.batches),
        f"{size_text(figures.memory)}, {share}",
    ]


def ranges_text(numbers: Sequence[int]) -> str:
    """Numbers as ranges: `0-2, 5`."""
    ordered = sorted(numbers)
    breaks = [i for i, (a, b) in enumerate(pairwise(ordered), start=1) if b != a + 1]
    bounds = pairwise([0, *breaks, len(ordered)])
    runs = [(ordered[begin], ordered[end - 1]) for begin, end in bounds]
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)


def stage_figures(problem: StageProblem, plan: StagePlan) -> dict[str, Any]:
    """The plan for scripts."""
    return {
        "problem": problem.name,
        "feasible": plan.feasible,
        "value": plan.value if plan.feasible else None,
        "bound": plan.bound if plan.bound < float("inf") else None,
        "gap": plan.gap if plan.feasible else None,
        "trials": plan.trials,
        "seconds": plan.seconds,
        "stages": [
            {
                "layers": stage.layers,
                "data": stage.data,
                "tensor": stage.tensor,
                "options": stage.options,
                "seconds": figures.seconds,
                "memory": figures.memory,
                "batches": figures.batches,
            }
            for stage, figures in zip(plan.stages, plan.figures, strict=True)
        ],
    }
