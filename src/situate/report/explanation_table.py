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
"""Most elements of the critical path, and most transfers, that are listed."""
SLICES = 16
"""Most slices, replicas, and modules that run again, that are listed."""
HOLDERS = 4
"""Most holders that are listed for a device that is too full."""

WAITING = {
    "waits for device": "the device is at something else",
    "waits for channel": "the channel is at other tensors",
    "waits for devices": "sender, receiver or channel of a tensor are at something else",
    "waits for call": "the call of the device has not come to it yet",
}
"""Why time passes on the critical path in which nothing on it runs."""

ROUNDING = 1e-9
"""Thousandths of a factor that rounding may have added."""

ALONE = {
    "time": "{value}, {size}",
    "memory": "{size}",
    "throughput": "a step every {value}, {size}",
}
"""Figures that are shown of a single device, by objective."""


def explanation(explained: Explanation) -> RenderableType:
    """All of an explanation, most important first."""
    parts = [
        _goal(explained),
        _path(explained),
        _costliest_elements(explained),
        _transfers(explained),
        _devices(explained),
        _slices(explained),
        _stages(explained),
        _replicas(explained),
        _recompute(explained),
        _memory(explained),
        _fit(explained),
    ]
    lines: list[RenderableType] = []
    for part in parts:
        if part is not None:
            lines += [part, Text()]
    return Group(*lines[:-1])


def _goal(explained: Explanation) -> RenderableType | None:
    """The objective, where it is not the makespan, which heads the critical path."""
    if explained.objective == "time":
        return None
    value = _value(explained, explained.value)
    if explained.objective == "memory":
        return Text(f"largest peak: {value}", "bold")
    made = table(f"one step every {value}", "|name|busy|share", (2, 3))
    for busy in explained.busiest[:ROWS]:
        share = share_text(busy.seconds / (explained.value or 1.0))
        made.add_row(busy.kind, name_cell(busy.name), _time(explained, busy.seconds), share)
    return made


def _path(explained: Explanation) -> RenderableType:
    path, total = explained.critical_path, explained.makespan or 1.0
    made = table(f"critical path: {_time(explained, explained.makespan)}", "|time|share", (1, 2))
    for part in ("compute", "transfer", "waiting"):
        seconds = getattr(path, part)
        made.add_row(part, _time(explained, seconds), share_text(seconds / total))
        for device, share in _passed(path, part):
            made.add_row(
                Text("  on ", "dim") + name_cell(device, "dim"),
                Text(_time(explained, share), "dim"),
                Text(share_text(share / total), "dim"),
            )
    return Group(made, Text(_waiting(path), "dim")) if path.waiting else made


def _waiting(path: CriticalPath) -> str:
    kinds = {element.kind for element in path.elements}
    return f"waiting: {', or '.join(why for kind, why in WAITING.items() if kind in kinds)}"


def _passed(path: CriticalPath, part: str) -> list[tuple[str, float]]:
    shares = [(device, share[part]) for device, share in path.by_device.items() if share[part]]
    return sorted(shares, key=lambda item: -item[1]) if len(path.by_device) > 1 else []


def _costliest_elements(explained: Explanation) -> Table:
    made = table("costliest on it", "what|name|where|time|from", (3, 4))
    elements = sorted(explained.critical_path.elements, key=lambda e: -e.seconds)
    for element in elements[:ROWS]:
        where = name_cell(element.device)
        if element.source:
            where = name_cell(element.source) + Text(" → ") + where
        made.add_row(
            element.kind,
            name_cell(element.name),
            where,
            _time(explained, element.seconds),
            _time(explained, element.start),
        )
    return made


def _transfers(explained: Explanation) -> Table | None:
    if not explained.transfers:
        return None
    made = table("costliest transfers", "tensor|way|size|time|queued before", (2, 3, 4))
    for transfer in explained.transfers[:ROWS]:
        made.add_row(
            name_cell(transfer.tensor),
            name_cell(transfer.source) + Text(" → ") + name_cell(transfer.target),
            size_text(transfer.size),
            _time(explained, transfer.seconds),
            _time(explained, transfer.queued),
        )
    return made


def _devices(explained: Explanation) -> Table:
    made = table("devices", "device|ops|busy|idle|sends|receives", (1, 2, 3, 4, 5))
    for device in _used(explained):
        times = (device.busy, device.idle, device.sending, device.receiving)
        made.add_row(
            name_cell(device.name), f"{device.ops:,}", *(_time(explained, t) for t in times)
        )
    unused = len(explained.devices) - made.row_count
    if unused:
        made.add_row(Text(f"{unused} more", "dim"), Text("0", "dim"))
    return made


def _slices(explained: Explanation) -> RenderableType | None:
    if not explained.slices:
        return None
    made = _slice_table(explained)
    return Group(Text(explained.parallelism, "bold"), made) if explained.parallelism else made


def _slice_table(explained: Explanation) -> Table:
    made = table("slices", "slice|samples|computes|from|to|on", (1, 2, 3, 4))
    for each in explained.slices[:SLICES]:
        total = sum(each.busy.values())
        times = (_time(explained, t) for t in (total, each.start, each.end))
        where = (f"{printable(d)} {share_text(t / (total or 1.0))}" for d, t in each.busy.items())
        made.add_row(str(each.number), f"{each.samples:,}", *times, ", ".join(where))
    if more := len(explained.slices) - made.row_count:
        made.add_row(Text(f"{more} more", "dim"))
    return made


def _replicas(explained: Explanation) -> Table | None:
    if not explained.replicas:
        return None
    made = table("replicas", "replica|updates|slices|held on", (1,))
    for each in explained.replicas[:SLICES]:
        where = (f"{printable(d)} {size_text(nbytes)}" for d, nbytes in each.held.items())
        slices = ", ".join(map(str, each.slices))
        made.add_row(str(each.number), _time(explained, each.updating), slices, ", ".join(where))
    if more := len(explained.replicas) - made.row_count:
        made.add_row(Text(f"{more} more", "dim"))
    return made


def _stages(explained: Explanation) -> Table | None:
    if not explained.stages:
        return None
    columns = "device|slices|in flight|forward|backward|update|from|to"
    made = table("stages", columns, range(1, 6))
    for stage in explained.stages:
        times = (stage.forward, stage.backward, stage.update)
        made.add_row(
            name_cell(stage.device),
            f"{stage.slices:,}",
            f"{stage.in_flight:,}",
            *(_time(explained, t) for t in times),
            name_cell(stage.first),
            name_cell(stage.last),
        )
    return made


def _recompute(explained: Explanation) -> Table | None:
    modules = explained.recompute
    if not modules:
        return None
    made = table("modules that run again", "module|ops|computes|not kept", (1, 2, 3))
    for each in modules[:SLICES]:
        made.add_row(
            printable(each.module),
            f"{each.ops:,}",
            _time(explained, each.busy),
            size_text(each.freed),
        )
    if more := len(modules) - made.row_count:
        made.add_row(Text(f"{more} more", "dim"))
    total = [sum(getattr(each, name) for each in modules) for name in ("ops", "busy", "freed")]
    made.add_row("all", f"{total[0]:,}", _time(explained, total[1]), size_text(total[2]))
    return made


def _used(explained: Explanation) -> list[DeviceUse]:
    return [device for device in explained.devices if device.ops or device.peak]


def _memory(explained: Explanation) -> Table:
    columns = "device|peak|limit|at|held all step|tensors|workspace"
    made = table("memory at its fullest", columns, range(1, 7))
    for device in _used(explained):
        made.add_row(
            name_cell(device.name),
            size_text(device.peak),
            "none" if device.limit is None else size_text(device.limit),
            _time(explained, device.peak_time),
            size_text(device.persistent),
            size_text(device.tensors),
            size_text(device.workspace),
            style="red" if device.over else "",
        )
    return made


def _fit(explained: Explanation) -> RenderableType:
    lines: list[RenderableType] = []
    for device in explained.devices:
        if device.over:
            lines += [_overflow(explained, device), _holders(device)]
    if explained.relaxation is not None:
        lines += [Text(line) for line in _relaxation_lines(explained.relaxation)]
    lines.append(Text(_single_line(explained, explained.single)))
    return Group(*lines)


def _overflow(explained: Explanation, device: DeviceUse) -> Text:
    at = _time(explained, device.peak_time)
    name = printable(device.name)
    return Text(f"{name} does not fit: {size_text(device.over)} too much at {at}.", "bold red")


def _holders(device: DeviceUse) -> Table:
    made = table("", "largest there|kind|size", (2,))
    for holder in device.holders[:HOLDERS]:
        made.add_row(name_cell(holder.name), holder.kind, size_text(holder.size))
    return made


def _relaxation_lines(relaxation: Relaxation) -> list[str]:
    needs = [
        f"{enough_text(size)} on {printable(name)}" for name, size in relaxation.memory.items()
    ]
    factor = math.ceil(1000 * relaxation.factor - ROUNDING) / 1000
    lines = [
        f"This plan would fit with {' and '.join(needs)}, "
        f"or with {factor:.3f} times the memory of every device."
    ]
    if relaxation.never:
        lines.append(f"With the memory that there is, no plan can fit: {relaxation.never}.")
    return lines


def _single_line(explained: Explanation, single: SingleDevice | None) -> str:
    if single is None:
        return "No single device may run all ops."
    name, size = printable(single.name), size_text(single.peak)
    if not single.fits:
        return f"No single device would do: in this order the step needs {size} on one."
    figures = ALONE[explained.objective].format(value=_value(explained, single.value), size=size)
    return f"{name} alone would {_verdict(explained, single)}: {figures}."


def _verdict(explained: Explanation, single: SingleDevice) -> str:
    if math.isclose(single.value, explained.value, rel_tol=1e-9):
        return "do as well"
    if single.value < explained.value:
        return "do better"
    return "do, but with more memory" if explained.objective == "memory" else "do, but slower"


def _value(explained: Explanation, value: float) -> str:
    return value_text(value, explained.objective, explained.unit)


def _time(explained: Explanation, value: float) -> str:
    return time_text(value, explained.unit)
