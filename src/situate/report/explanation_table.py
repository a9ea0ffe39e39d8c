"""An explanation as tables for the terminal."""

from __future__ import annotations

import math

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from situate.report.critical import CriticalPath
from situate.report.explain import DeviceUse, Explanation, Relaxation
from situate.report.one_device import SingleDevice
from situate.report.tables import name_cell, table
from situate.report.text import printable
from situate.report.units import enough_text, share_text, size_text, time_text, value_text

ROWS = 8
"""Most listed elements of the critical path, and most listed transfers."""
SLICES = 16
"""Most listed slices, replicas, and modules that run again."""
HOLDERS = 4
"""Most listed holders of memory for a device above its limit."""

WAITING = {
    "waits for device": "the device is at something else",
    "waits for channel": "the channel is at other tensors",
    "waits for devices": "sender, receiver or channel of a tensor are at something else",
    "waits for call": "the call of the device has not come to it yet",
}
"""Reasons for waiting on the critical path."""

ROUNDING = 1e-9
"""Largest rounding error of a factor, in thousandths."""

ALONE = {
    "time": "{value}, {size}",
    "memory": "{size}",
    "throughput": "a step every {value}, {size}",
}
"""Figures of a single device, by objective."""


def explanation_table(explanation: Explanation) -> RenderableType:
    """All of an explanation, most important first."""
    parts = [
        _goal(explanation),
        _path(explanation),
        _costliest_elements(explanation),
        _transfers(explanation),
        _devices(explanation),
        _parallelism(explanation),
        _slices(explanation),
        _stages(explanation),
        _replicas(explanation),
        _recompute(explanation),
        _memory(explanation),
        _fit(explanation),
    ]
    lines: list[RenderableType] = []
    for part in parts:
        if part is not None:
            lines += [part, Text()]
    return Group(*lines[:-1])


def _goal(explanation: Explanation) -> RenderableType | None:
    """The objective; None for the makespan, which heads the table of the critical path."""
    if explanation.objective == "time":
        return None
    value = _value(explanation, explanation.value)
    if explanation.objective == "memory":
        return Text(f"largest peak: {value}", "bold")
    grid = table(f"one step every {value}", "|name|busy|share", (2, 3))
    for busy in explanation.busiest[:ROWS]:
        share = share_text(busy.seconds / (explanation.value or 1.0))
        grid.add_row(busy.kind, name_cell(busy.name), _time(explanation, busy.seconds), share)
    return grid


def _path(explanation: Explanation) -> RenderableType:
    path, total = explanation.critical_path, explanation.makespan or 1.0
    title = f"critical path: {_time(explanation, explanation.makespan)}"
    grid = table(title, "|time|share", (1, 2))
    for part in ("compute", "transfer", "waiting"):
        seconds = getattr(path, part)
        grid.add_row(part, _time(explanation, seconds), share_text(seconds / total))
        for device, share in _passed(path, part):
            grid.add_row(
                Text("  on ", "dim") + name_cell(device, "dim"),
                Text(_time(explanation, share), "dim"),
                Text(share_text(share / total), "dim"),
            )
    return Group(grid, Text(_waiting(path), "dim")) if path.waiting else grid


def _waiting(path: CriticalPath) -> str:
    kinds = {element.kind for element in path.elements}
    return f"waiting: {', or '.join(why for kind, why in WAITING.items() if kind in kinds)}"


def _passed(path: CriticalPath, part: str) -> list[tuple[str, float]]:
    shares = [(device, share[part]) for device, share in path.by_device.items() if share[part]]
    return sorted(shares, key=lambda item: -item[1]) if len(path.by_device) > 1 else []


def _costliest_elements(explanation: Explanation) -> Table:
    grid = table("costliest on it", "what|name|where|time|from", (3, 4))
    elements = sorted(explanation.critical_path.elements, key=lambda e: -e.seconds)
    for element in elements[:ROWS]:
        where = name_cell(element.device)
        if element.source:
            where = name_cell(element.source) + Text(" → ") + where
        grid.add_row(
            element.kind,
            name_cell(element.name),
            where,
            _time(explanation, element.seconds),
            _time(explanation, element.start),
        )
    return grid


def _transfers(explanation: Explanation) -> Table | None:
    if not explanation.transfers:
        return None
    grid = table("costliest transfers", "tensor|way|size|time|queued before", (2, 3, 4))
    for transfer in explanation.transfers[:ROWS]:
        grid.add_row(
            name_cell(transfer.tensor),
            name_cell(transfer.source) + Text(" → ") + name_cell(transfer.target),
            size_text(transfer.size),
            _time(explanation, transfer.seconds),
            _time(explanation, transfer.queued),
        )
    return grid


def _devices(explanation: Explanation) -> Table:
    grid = table("devices", "device|ops|busy|idle|sends|receives", (1, 2, 3, 4, 5))
    for device in _devices_in_use(explanation):
        times = (device.busy, device.idle, device.sending, device.receiving)
        grid.add_row(
            name_cell(device.name), f"{device.ops:,}", *(_time(explanation, t) for t in times)
        )
    unused = len(explanation.devices) - grid.row_count
    if unused:
        grid.add_row(Text(f"{unused} more", "dim"), Text("0", "dim"))
    return grid


def _parallelism(explanation: Explanation) -> RenderableType | None:
    """The kinds of parallelism that have a name, and the step in collectives."""
    lines = []
    if explanation.parallelism:
        lines.append(Text(explanation.parallelism, "bold"))
    if explanation.collectives:
        lines.append(Text(explanation.collectives))
    return Group(*lines) if lines else None


def _slices(explanation: Explanation) -> Table | None:
    if not explanation.slices:
        return None
    grid = table("slices", "slice|samples|computes|from|to|on", (1, 2, 3, 4))
    for slice_use in explanation.slices[:SLICES]:
        total = sum(slice_use.busy.values())
        times = (_time(explanation, t) for t in (total, slice_use.start, slice_use.end))
        where = (
            f"{printable(d)} {share_text(t / (total or 1.0))}" for d, t in slice_use.busy.items()
        )
        grid.add_row(str(slice_use.number), f"{slice_use.samples:,}", *times, ", ".join(where))
    if more := len(explanation.slices) - grid.row_count:
        grid.add_row(Text(f"{more} more", "dim"))
    return grid


def _replicas(explanation: Explanation) -> Table | None:
    if not explanation.replicas:
        return None
    grid = table("replicas", "replica|updates|slices|held on", (1,))
    for replica in explanation.replicas[:SLICES]:
        where = (f"{printable(d)} {size_text(nbytes)}" for d, nbytes in replica.held.items())
        slices = ", ".join(map(str, replica.slices))
        grid.add_row(
            str(replica.number), _time(explanation, replica.updating), slices, ", ".join(where)
        )
    if more := len(explanation.replicas) - grid.row_count:
        grid.add_row(Text(f"{more} more", "dim"))
    return grid


def _stages(explanation: Explanation) -> Table | None:
    if not explanation.stages:
        return None
    columns = "device|slices|in flight|forward|backward|update|from|to"
    grid = table("stages", columns, range(1, 6))
    for stage in explanation.stages:
        times = (stage.forward, stage.backward, stage.update)
        grid.add_row(
            name_cell(stage.device),
            f"{stage.slices:,}",
            f"{stage.in_flight:,}",
            *(_time(explanation, t) for t in times),
            name_cell(stage.first),
            name_cell(stage.last),
        )
    return grid


def _recompute(explanation: Explanation) -> Table | None:
    modules = explanation.recompute
    if not modules:
        return None
    grid = table("modules that run again", "module|ops|computes|not kept", (1, 2, 3))
    for module in modules[:SLICES]:
        grid.add_row(
            printable(module.module),
            f"{module.ops:,}",
            _time(explanation, module.busy),
            size_text(module.freed),
        )
    if more := len(modules) - grid.row_count:
        grid.add_row(Text(f"{more} more", "dim"))
    total = [sum(getattr(module, name) for module in modules) for name in ("ops", "busy", "freed")]
    grid.add_row("all", f"{total[0]:,}", _time(explanation, total[1]), size_text(total[2]))
    return grid


def _devices_in_use(explanation: Explanation) -> list[DeviceUse]:
    return [device for device in explanation.devices if device.ops or device.peak]


def _memory(explanation: Explanation) -> Table:
    columns = "device|peak|limit|at|held all step|tensors|workspace"
    grid = table("memory at its fullest", columns, range(1, 7))
    for device in _devices_in_use(explanation):
        grid.add_row(
            name_cell(device.name),
            size_text(device.peak),
            "none" if device.limit is None else size_text(device.limit),
            _time(explanation, device.peak_time),
            size_text(device.persistent),
            size_text(device.tensors),
            size_text(device.workspace),
            style="red" if device.over else "",
        )
    return grid


def _fit(explanation: Explanation) -> RenderableType:
    lines: list[RenderableType] = []
    for device in explanation.devices:
        if device.over:
            lines += [_overflow(explanation, device), _holders(device)]
    if explanation.relaxation is not None:
        lines += [Text(line) for line in _relaxation_lines(explanation.relaxation)]
    lines.append(Text(_single_line(explanation, explanation.single)))
    return Group(*lines)


def _overflow(explanation: Explanation, device: DeviceUse) -> Text:
    at = _time(explanation, device.peak_time)
    name = printable(device.name)
    return Text(f"{name} does not fit: {size_text(device.over)} too much at {at}.", "bold red")


def _holders(device: DeviceUse) -> Table:
    grid = table("", "largest there|kind|size", (2,))
    for holder in device.holders[:HOLDERS]:
        grid.add_row(name_cell(holder.name), holder.kind, size_text(holder.size))
    return grid


def _relaxation_lines(relaxation: Relaxation) -> list[str]:
    needs = [
        f"{enough_text(size)} on {printable(name)}" for name, size in relaxation.memory.items()
    ]
    # Rounded up, because with a smaller factor the plan would not fit.
    factor = math.ceil(1000 * relaxation.factor - ROUNDING) / 1000
    lines = [
        f"This plan would fit with {' and '.join(needs)}, "
        f"or with {factor:.3f} times the memory of every device."
    ]
    if relaxation.never:
        lines.append(f"With the memory that there is, no plan can fit: {relaxation.never}.")
    return lines


def _single_line(explanation: Explanation, single: SingleDevice | None) -> str:
    if single is None:
        return "No single device may run all ops."
    name, size = printable(single.name), size_text(single.peak)
    if not single.fits:
        return f"No single device would do: in this order the step needs {size} on one."
    figures = ALONE[explanation.objective].format(
        value=_value(explanation, single.value), size=size
    )
    return f"{name} alone would {_verdict(explanation, single)}: {figures}."


def _verdict(explanation: Explanation, single: SingleDevice) -> str:
    if math.isclose(single.value, explanation.value, rel_tol=1e-9):
        return "do as well"
    if single.value < explanation.value:
        return "do better"
    return "do, but with more memory" if explanation.objective == "memory" else "do, but slower"


def _value(explanation: Explanation, value: float) -> str:
    return value_text(value, explanation.objective, explanation.unit)


def _time(explanation: Explanation, value: float) -> str:
    return time_text(value, explanation.unit)
