"""A graph as columns for the page: bars, tensors, and the readers of each tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from situate.data.problem import Problem
from situate.report.pictures.op_colors import OpColors
from situate.report.text import tensor_name
from situate.report.view.bars import Bars
from situate.report.view.block import Texts, smallest


def graph_columns(problem: Problem, classes: OpColors, bars: Bars) -> dict[str, Any]:
    """The columns of a graph; `-1` in `slice`, `replica` and `part` stands for none.

    Returns:
        names and scalars of the graph, columns (bars,) under `ops` and (tensors,) under `tensors`.
    """
    graph = problem.graph
    ops = [graph.ops[op] for op in bars.first.tolist()]
    return {
        "name": graph.name,
        "unit": graph.unit,
        "count": problem.n,
        "classes": list(classes.labels),
        "slices": list(graph.slices.shares) if graph.slices else [],
        "ops": {
            "name": Texts(_names([op.name for op in ops], bars)),
            "kind": _indexed([op.kind for op in ops]),
            "module": _indexed([op.module for op in ops]),
            "phase": _indexed([op.phase for op in ops]),
            "dtype": _indexed([op.dtype for op in ops]),
            "signature": _indexed([op.signature for op in ops]),
            "class": classes.of[bars.first].astype(np.uint8),
            "count": smallest(bars.count),
            "flops": bars.totals(np.array([op.flops for op in graph.ops], np.float64)),
            "persistent": bars.totals(problem.persistent),
            "workspace": bars.totals(problem.workspace),
            "slice": _numbers([op.slice for op in ops]),
            "replica": _numbers([op.replica for op in ops]),
            "part": _numbers([op.part for op in ops]),
            "again": np.array([op.recompute for op in ops], np.uint8),
        },
        "tensors": _tensors(problem, bars),
    }


def _names(names: Sequence[str], bars: Bars) -> Sequence[str]:
    """The names of bars: that of their op, or of their first op with the number of the others."""
    if not bars.aggregated:
        return names
    return [
        f"{name} and {count - 1} more" if count > 1 else name
        for name, count in zip(names, bars.count.tolist(), strict=True)
    ]


def _numbers(values: Sequence[int | None]) -> np.ndarray:
    return np.array([-1 if value is None else value for value in values], np.int32)


def _indexed(values: Sequence[str]) -> dict[str, Any]:
    """Texts without repetition, and the index (n,) of each value."""
    index: dict[str, int] = {}
    of = [index.setdefault(value, len(index)) for value in values]
    return {"of": smallest(np.array(of, np.int64)), "texts": Texts(list(index))}


def _tensors(problem: Problem, bars: Bars) -> dict[str, Any]:
    first = problem.consumer_start.astype(np.int64)
    return {
        "name": Texts([tensor_name(problem, tensor) for tensor in range(len(problem.size))]),
        "producer": smallest(bars.of[problem.producer]),
        "size": problem.size.astype(np.float64),
        "resident": problem.resident.astype(np.uint8),
        "first": smallest(first),
        "readers": smallest(bars.of[problem.consumers]),
    }
