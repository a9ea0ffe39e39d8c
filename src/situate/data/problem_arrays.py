"""The arrays of a graph on a cluster that do not depend on colocation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from situate import _core
from situate.data.arrays import Order
from situate.data.cluster import Cluster
from situate.data.cost_lookup import workspace_of
from situate.data.costs import Costs
from situate.data.graph import Graph
from situate.data.roofline import op_seconds
from situate.data.rules import Rules

UNLIMITED = 2**62
"""Capacity of a device without a limit, in bytes."""


@dataclass(frozen=True, eq=False)
class ProblemArrays:
    """Arrays of a graph on a cluster, each computed when it is first read; see `Problem`."""

    graph: Graph
    cluster: Cluster
    rules: Rules
    costs: Costs | None

    @property
    def n(self) -> int:
        """Number of ops."""
        return len(self.graph.ops)

    @property
    def d(self) -> int:
        """Number of devices."""
        return len(self.cluster.devices)

    @cached_property
    def seconds(self) -> NDArray[np.float64]:
        return op_seconds(self.graph, self.cluster, self.costs)

    @cached_property
    def _tensors(self) -> tuple[NDArray[np.int64], ...]:
        """size, producer, consumer_start, consumers of all tensors, control tensors last."""
        # One tensor for all control edges of an op: a device pays for synchronisation once.
        after: dict[int, dict[int, None]] = {}
        for before, op in self.graph.control:
            after.setdefault(before, {})[op] = None
        tensors = self.graph.tensors
        consumers = [t.consumers for t in tensors] + [tuple(ops) for ops in after.values()]
        lengths = np.fromiter(map(len, consumers), np.int64, len(consumers))
        flat = np.fromiter((op for ops in consumers for op in ops), np.int64, int(lengths.sum()))
        size = np.array([t.size for t in tensors] + [0] * len(after), np.int64)
        producer = np.array([t.producer for t in tensors] + list(after), np.int64)
        return size, producer, np.concatenate(([0], np.cumsum(lengths))), flat

    @property
    def size(self) -> NDArray[np.int64]:
        return self._tensors[0]

    @cached_property
    def producer(self) -> NDArray[np.int32]:
        return self._tensors[1].astype(np.int32)

    @cached_property
    def consumer_start(self) -> NDArray[np.int32]:
        return self._tensors[2].astype(np.int32)

    @cached_property
    def consumers(self) -> NDArray[np.int32]:
        return self._tensors[3].astype(np.int32)

    @cached_property
    def transfer_seconds(self) -> NDArray[np.float64]:
        own = [np.nan if t.seconds is None else t.seconds for t in self.graph.tensors]
        return np.array(own + [np.nan] * (len(self.size) - len(own)), np.float64)

    @cached_property
    def signal(self) -> NDArray[np.bool_]:
        empty = (self.size == 0) & np.isnan(self.transfer_seconds)
        return np.asarray(empty & self.rules.signals)

    @cached_property
    def resident(self) -> NDArray[np.uint8]:
        return self._flags("resident")

    @cached_property
    def output(self) -> NDArray[np.uint8]:
        return self._flags("output") * np.uint8(self.rules.memory != "step")

    def _flags(self, name: str) -> NDArray[np.uint8]:
        flags = np.zeros(len(self.size), np.uint8)
        tensors = self.graph.tensors
        flags[: len(tensors)] = np.fromiter(map(attrgetter(name), tensors), np.uint8, len(tensors))
        return flags

    @cached_property
    def persistent(self) -> NDArray[np.int64]:
        return np.array([op.persistent for op in self.graph.ops], np.int64)

    @cached_property
    def workspace(self) -> NDArray[np.int64]:
        return workspace_of(self.graph.ops, self.costs)

    @cached_property
    def capacity(self) -> NDArray[np.int64]:
        memory = [UNLIMITED if d.memory is None else d.memory for d in self.cluster.devices]
        return np.array(memory, np.int64)

    @cached_property
    def accelerators(self) -> NDArray[np.bool_]:
        return np.array([device.kind != "cpu" for device in self.cluster.devices])

    @cached_property
    def depth_first(self) -> NDArray[np.int32]:
        """(n,) a topological order with every op just before its first use: depth first through the
        inputs of each op without consumers."""
        order = np.array(self.graph.order, np.int32)
        place = np.empty(self.n, np.int64)
        place[order] = np.arange(self.n)
        producers = np.repeat(self.producer, np.diff(self.consumer_start))
        return post_order(order, producers, self.consumers, rank=place)

    @cached_property
    def serial_seconds(self) -> float:
        """Upper bound on the seconds of any schedule: the sum of the longest times of all ops and
        transfers."""
        of_ops, of_tensors = self.longest_times
        # A sum that overflows is infinite, and `Problem` refuses it.
        with np.errstate(over="ignore"):
            once = (of_tensors + self.cluster.synchronisation).sum()
            return float(of_ops.sum() + (once * (self.d - 1) if self.d > 1 else 0.0))

    @cached_property
    def longest_times(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Seconds of every op on its slowest device and of every tensor over its slowest link."""
        own, size = self.transfer_seconds, self.size
        of_ops = np.where(np.isfinite(self.seconds), self.seconds, 0.0).max(axis=1)
        # Signals and tensors with seconds of their own do not depend on the links.
        linked = np.isnan(own) & ~self.signal
        with np.errstate(over="ignore"):
            return of_ops, np.where(linked, self._slowest(size), np.nan_to_num(own))

    def _slowest(self, size: NDArray[np.int64]) -> NDArray[np.float64]:
        """Seconds that tensors of these sizes take over the worst of all links."""
        # On the diagonals latency is zero and bandwidth infinite, which is never the worst.
        return np.asarray(self.cluster.latency.max() + size / self.cluster.bandwidth.min())


# A topological order by walking a graph depth first.
def post_order(order: Order, before: Order, after: Order, rank: NDArray[np.int64]) -> Order:
    """(n,) every op after its predecessors, and just before its first successor.

    Args:
        order: (n,) all ops; ops without successors are reached in this order.
        before, after: (edges,) ops at the ends of each edge; there are no cycles.
        rank: (n,) of an op's predecessors, the one with the largest rank comes first.
    """
    # (edges,) by their ends, and in the order of rising ranks.
    rising = np.lexsort((rank[before], after))
    start = np.concatenate(([0], np.cumsum(np.bincount(after, minlength=len(order)))))
    return _core.problem.depth_first_order(order, start, before[rising])
