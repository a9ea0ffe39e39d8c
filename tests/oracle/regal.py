"""REGAL's performance model and chromosome (A. Paliwal et al., ICLR 2020, A.4 and A.5), from the
paper alone: nothing here is the simulator's, the other oracle's or a problem's arrays.

Where the paper is silent, docs/execution-model.md decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from situate.data.cluster import Cluster
from situate.data.graph import Graph


@dataclass(frozen=True)
class Edge:
    """A tensor: the op that produces it, those that consume it, and m_tau."""

    producer: int
    consumers: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class Send:
    """A transfer operation: consumes a tensor where it was created, produces it on the target."""

    tensor: int
    target: int


Item = int | Send
"""An op of N, by its index, or a transfer: together the extended set of A.4."""


def edges_of(graph: Graph) -> list[Edge]:
    """Tensors; "we consider control dependencies as being tensors of size zero" (A.2)."""
    after: dict[int, list[int]] = {}
    for before, op in graph.control:
        if op not in after.setdefault(before, []):
            after[before].append(op)
    tensors = [Edge(t.producer, tuple(t.consumers), t.size) for t in graph.tensors]
    return tensors + [Edge(op, tuple(consumers), 0) for op, consumers in after.items()]


class Model:
    """A graph on devices with links that take latency + size / bandwidth, under a placement.

    Args:
        seconds: r_j of every op on the device that it is placed on.
    """

    def __init__(
        self, graph: Graph, cluster: Cluster, placement: Sequence[int], seconds: Sequence[float]
    ) -> None:
        self.edges, self.cluster = edges_of(graph), cluster
        self.placement, self.seconds = placement, seconds
        self.sends = [
            Send(t, target)
            for t, edge in enumerate(self.edges)
            for target in sorted({placement[c] for c in edge.consumers} - {self.home(t)})
        ]

    def home(self, tensor: int) -> int:
        return self.placement[self.edges[tensor].producer]

    def consumed_by(self, item: Item) -> list[tuple[int, int]]:
        """Tensors, each with the device on which the item needs it."""
        if isinstance(item, Send):
            return [(item.tensor, self.home(item.tensor))]
        here = self.placement[item]
        return [(t, here) for t, edge in enumerate(self.edges) if item in edge.consumers]

    def produced_by(self, item: Item) -> list[tuple[int, int]]:
        if isinstance(item, Send):
            return [(item.tensor, item.target)]
        here = self.placement[item]
        return [(t, here) for t, edge in enumerate(self.edges) if edge.producer == item]

    def schedule(
        self, op_priority: Sequence[float], send_priority: Sequence[Sequence[float]]
    ) -> list[Item]:
        """A topological sort, the item of the highest priority first (A.5). Of equal ones an op
        before a transfer, then the lower index."""
        waiting: list[Item] = [*range(len(self.placement)), *self.sends]
        available: set[tuple[int, int]] = set()
        order: list[Item] = []

        def urgency(item: Item) -> tuple[float, int, int, int]:
            if isinstance(item, Send):
                return -send_priority[item.tensor][item.target], 1, item.tensor, item.target
            return -op_priority[item], 0, item, 0

        while waiting:
            ready = [item for item in waiting if available.issuperset(self.consumed_by(item))]
            item = min(ready, key=urgency)
            waiting.remove(item)
            order.append(item)
            available.update(self.produced_by(item))
        return order

    def peak_memory(self, order: Sequence[Item]) -> list[int]:
        """The largest sum of the tensors in memory at any simulation time step, on each device."""
        last: dict[tuple[int, int], int] = {}
        for step, item in enumerate(order):
            for copy in (*self.produced_by(item), *self.consumed_by(item)):
                last[copy] = step
        peak = [0] * len(self.cluster.devices)
        in_memory: set[tuple[int, int]] = set()
        for step, item in enumerate(order):
            assert in_memory.issuperset(self.consumed_by(item)), "the schedule is not valid"
            in_memory.update(self.produced_by(item))
            for device in range(len(peak)):
                use = sum(self.edges[t].size for t, where in in_memory if where == device)
                peak[device] = max(peak[device], use)
            in_memory = {copy for copy in in_memory if last[copy] > step}
        return peak

    def runtime(self, order: Sequence[Item]) -> float:
        """Step by step: an op takes its time on its device; a transfer begins when sender and
        receiver have completed their work before it, and keeps both until it ends."""
        done = [0.0] * len(self.cluster.devices)
        for item in order:
            if isinstance(item, Send):
                source, target = self.home(item.tensor), item.target
                latency = float(self.cluster.latency[source, target])
                bandwidth = float(self.cluster.bandwidth[source, target])
                taken = latency + self.edges[item.tensor].size / bandwidth
                taken += self.cluster.synchronisation
                done[source] = done[target] = max(done[source], done[target]) + taken
            else:
                done[self.placement[item]] += self.seconds[item]
        return max(done)
