"""Tables of measured costs: op classes of a device, and links."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from situate.data.costs import Costs, MeasuredDevice
from situate.data.graph import Graph
from situate.data.op_classes import op_class
from situate.report.tables import name_cell, table
from situate.report.text import printable
from situate.report.units import count_text, share_text, time_text

COLUMNS = "op class|ops|distinct|seconds|of peak FLOP/s|of bandwidth|launches|error|others busy"


def costs_table(costs: Costs, graph: Graph) -> RenderableType:
    """Each measured device by op class of a graph, then the links."""
    parts = [part for device in costs.devices for part in _device(device, graph)]
    return Group(*parts, *_links(costs))


def step_seconds(device: MeasuredDevice, graph: Graph) -> dict[str, float]:
    """By op class, the total seconds of a graph's measured ops; the longest first."""
    sums: dict[str, float] = {}
    for op in graph.ops:
        if timing := device.seconds.get(op.signature):
            name = op_class(op.kind)
            sums[name] = sums.get(name, 0.0) + timing.median
    return dict(sorted(sums.items(), key=lambda entry: -entry[1]))


def _device(device: MeasuredDevice, graph: Graph) -> Iterator[RenderableType]:
    sums = step_seconds(device, graph)
    kinds = {op.signature: op_class(op.kind) for op in graph.ops if op.signature in device.seconds}
    counts = [op_class(op.kind) for op in graph.ops if op.signature in device.seconds]
    total = time_text(sum(sums.values()))
    grid = table(f"{printable(device.name)}: a step takes {total}", COLUMNS, range(1, 9))
    for name, seconds in sums.items():
        fit, slower = device.efficiency.get(name), device.contention.get(name)
        grid.add_row(
            name,
            f"{counts.count(name):,}",
            f"{list(kinds.values()).count(name):,}",
            time_text(seconds),
            share_text(fit.arithmetic) if fit else "-",
            share_text(fit.memory) if fit else "-",
            f"{fit.launches:.1f}" if fit else "-",
            f"{fit.error:.2f}x" if fit else "-",
            f"{slower:.2f}x" if slower else "-",
        )
    yield grid
    yield Text(f"a launch takes {time_text(device.launch)}\n")


def _links(costs: Costs) -> Iterator[RenderableType]:
    if not costs.links:
        return
    grid = table("links", "from|to|bytes/s|latency", (2, 3))
    for link in costs.links:
        ends = name_cell(link.source), name_cell(link.target)
        grid.add_row(*ends, count_text(link.bandwidth), time_text(link.latency))
    yield grid
    yield Text(f"and {time_text(costs.synchronisation)} for each to cross")
