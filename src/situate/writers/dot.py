"""Graphviz: the graph with its ops clustered and coloured by device."""

from __future__ import annotations

from pathlib import Path

from situate.data.problem import Problem
from situate.files.atomic import write_bytes
from situate.report.pictures.op_colors import PALETTE, ink_on
from situate.report.text import printable
from situate.report.units import size_text
from situate.schedule.schedule import Schedule


def write(problem: Problem, schedule: Schedule, path: str | Path) -> None:
    """Write the placed graph as DOT; solid edges are tensors, dashed ones control.

    Raises:
        SituateError: `path` cannot be written.
    """
    lines = [
        f"digraph {_quoted(problem.graph.name)} {{",
        "  node [shape=box, style=filled];",
        *_clusters(problem, schedule),
        *_tensor_edges(problem, schedule),
        *(f"  op{before} -> op{after} [style=dashed];" for before, after in problem.graph.control),
        "}",
    ]
    write_bytes(path, ("\n".join(lines) + "\n").encode("utf-8"))


def _clusters(problem: Problem, schedule: Schedule) -> list[str]:
    placement = schedule.placement.tolist()
    lines = []
    for device, name in enumerate(problem.cluster.names):
        color = PALETTE[device % len(PALETTE)]
        style = f'fillcolor="{color}", fontcolor="{ink_on(color)}"'
        lines += [f"  subgraph cluster_{device} {{", f"    label={_quoted(name)};"]
        lines += [
            f"    op{j} [label={_quoted(op.name)}, {style}];"
            for j, op in enumerate(problem.graph.ops)
            if placement[j] == device
        ]
        lines.append("  }")
    return lines


def _tensor_edges(problem: Problem, schedule: Schedule) -> list[str]:
    placement = schedule.placement.tolist()
    lines = []
    for tensor in problem.graph.tensors:
        label = f"{printable(tensor.name)}, {size_text(tensor.size)}"
        for consumer in tensor.consumers:
            crosses = placement[tensor.producer] != placement[consumer]
            style = ", color=red" if crosses else ""
            attributes = f"tooltip={_quoted(label)}{style}"
            lines.append(f"  op{tensor.producer} -> op{consumer} [{attributes}];")
    return lines


def _quoted(text: str) -> str:
    """A DOT string: quotes and backslashes escaped, control characters spelt out."""
    safe = printable(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{safe}"'
