"""The critical path of a schedule: the way back from its last end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from situate.data.problem import Problem
from situate.data.topology import edge_tensors
from situate.report.text import tensor_name
from situate.schedule.items import channel_items, device_items, item_order, turns
from situate.schedule.schedule import Schedule

Kind = Literal[
    "compute",
    "transfer",
    "waits for device",
    "waits for channel",
    "waits for devices",
    "waits for call",
]


@dataclass(frozen=True)
class Element:
    """One segment of the critical path.

    Attributes:
        kind: computing, a transfer, or a kind of waiting.
        name: the op or tensor.
        device: where it runs or waits; the receiving device of a transfer.
        source: the sending device of a transfer, else empty.
        start, end: in the graph's unit of time.
    """

    kind: Kind
    name: str
    device: str
    source: str
    start: float
    end: float

    @property
    def seconds(self) -> float:
        """The duration of the segment."""
        return self.end - self.start


@dataclass(frozen=True)
class CriticalPath:
    """The chain of last dependencies, from the start of the step to its end.

    An op's last dependency is the input that arrives last. Where devices keep to their order
    (decoder `serial`), it may also be the op before it on its device.

    `compute`, `transfer` and `waiting` add up to the makespan. An op waits when it has all its
    inputs and its device is busy with other ops. A tensor waits when it is produced and not yet on
    its way: for its channel, for the devices that a blocking transfer occupies, or under atomic
    rules for the call that receives it.
    """

    compute: float
    transfer: float
    waiting: float
    by_device: dict[str, dict[str, float]]
    """Seconds of compute, transfer (received) and waiting on each device that it passes."""
    elements: tuple[Element, ...]
    """In order of time."""


def critical_path(problem: Problem, schedule: Schedule) -> CriticalPath:
    """Follow each op's last dependency, from the op that ends last back to the start."""
    elements = tuple(reversed(_Walk(problem, schedule).back()))
    by_device: dict[str, dict[str, float]] = {}
    for element in elements:
        share = by_device.setdefault(
            element.device, {"compute": 0.0, "transfer": 0.0, "waiting": 0.0}
        )
        share[_part(element)] += element.seconds
    totals = {
        part: float(sum(share[part] for share in by_device.values()))
        for part in ("compute", "transfer", "waiting")
    }
    return CriticalPath(**totals, by_device=by_device, elements=elements)


def _part(element: Element) -> str:
    return "waiting" if element.kind.startswith("waits") else element.kind


class _Walk:
    """The way back through a schedule."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self.problem, self.schedule = problem, schedule
        self.elements: list[Element] = []
        self.before = _before(problem, schedule)
        self.op_waits, self.transfer_waits = _waits(problem, schedule)
        self.end = np.concatenate((schedule.end, schedule.transfer_end))
        pairs = zip(schedule.tensor.tolist(), schedule.target.tolist(), strict=True)
        self.transfer = {pair: k for k, pair in enumerate(pairs)}
        # Edges sorted by reader: op j reads the tensors inputs[first[j] : first[j + 1]].
        order = np.argsort(problem.consumers, kind="stable")
        self.inputs = edge_tensors(problem)[order]
        self.first = np.searchsorted(problem.consumers[order], np.arange(problem.n + 1))

    def back(self) -> list[Element]:
        """The segments of the path, the last one first."""
        n = self.problem.n
        item: int | None = int(np.argmax(self.schedule.end))
        while item is not None:
            item = self._op(item) if item < n else self._transfer(item - n)
        return self.elements

    def _op(self, op: int) -> int | None:
        """Add `op` and its waiting time; return the item before it on the path."""
        start = float(self.schedule.start[op])
        device = int(self.schedule.placement[op])
        name = self.problem.graph.ops[op].name
        self._add("compute", name, device, start, float(self.schedule.end[op]))
        arrivals = [(self._arrival(t, device), t) for t in self._inputs(op)]
        ready, tensor = max(((a, t) for a, t in arrivals if a <= start), default=(0.0, -1))
        # Ready before its start: the op waited for its turn, so the path goes on along the device.
        if ready < start and (before := self._ahead(op, start)) is not None:
            return before
        self._add(self.op_waits, name, device, ready, start)
        if tensor < 0:
            return None
        k = self.transfer.get((tensor, device))
        return int(self.problem.producer[tensor]) if k is None else self.problem.n + k

    def _transfer(self, k: int) -> int:
        """Add transfer `k` and its waiting time; return the item before it on the path."""
        schedule, tensor = self.schedule, int(self.schedule.tensor[k])
        producer = int(self.problem.producer[tensor])
        start, end = float(schedule.transfer_start[k]), float(schedule.transfer_end[k])
        source, target = int(schedule.source[k]), int(schedule.target[k])
        name = tensor_name(self.problem, tensor)
        self._add("transfer", name, target, start, end, source)
        ready = float(schedule.end[producer])
        if ready < start and (before := self._ahead(self.problem.n + k, start)) is not None:
            return before
        self._add(self.transfer_waits, name, target, ready, start, source)
        return producer

    def _ahead(self, item: int, start: float) -> int | None:
        """The item whose end lets `item` start; None where items have no turns."""
        ahead = self.before.get(item, ())
        # Times compare exactly: the simulator copies the end of an item into the start of the next.
        return next((before for before in ahead if self.end[before] == start), None)

    def _inputs(self, op: int) -> list[int]:
        tensors: list[int] = self.inputs[self.first[op] : self.first[op + 1]].tolist()
        return tensors

    def _arrival(self, tensor: int, device: int) -> float:
        """The time at which a tensor arrives on a device that reads it."""
        k = self.transfer.get((tensor, device))
        if k is not None:
            return float(self.schedule.transfer_end[k])
        return float(self.schedule.end[self.problem.producer[tensor]])

    def _add(
        self, kind: Kind, name: str, device: int, start: float, end: float, source: int = -1
    ) -> None:
        if end > start:
            names = self.problem.cluster.names
            sender = names[source] if source >= 0 else ""
            self.elements.append(Element(kind, name, names[device], sender, start, end))


def _waits(problem: Problem, schedule: Schedule) -> tuple[Kind, Kind]:
    """The kinds of waiting of an op and of a transfer that could start."""
    if schedule.decoder == "calls":
        return "waits for call", "waits for call"
    blocking = problem.transfers == "blocking"
    return "waits for device", "waits for devices" if blocking else "waits for channel"


def _before(problem: Problem, schedule: Schedule) -> dict[int, list[int]]:
    """The items just ahead of each item on its devices, where devices keep to their order.

    Blocking transfers have turns as ops do, so they also have items ahead on their channel. Items
    are numbered as in `situate.schedule.items`.
    """
    if schedule.decoder != "serial":
        return {}
    predecessors: dict[int, list[int]] = {}
    order = item_order(schedule, problem)
    lanes = [device_items(schedule, problem)]
    if problem.transfers == "blocking":
        lanes.append(channel_items(schedule, problem))
    for items, places in lanes:
        for before, after in turns(items, places, order).T.tolist():
            predecessors.setdefault(after, []).append(before)
    return predecessors
