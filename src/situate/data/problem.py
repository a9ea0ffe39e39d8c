"""A problem: a graph on a cluster, with costs and an objective, as flat arrays."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from situate.data.cluster import OWN_MACHINE, Cluster
from situate.data.cost_lookup import estimated, workspace_of
from situate.data.costs import Costs
from situate.data.graph import TOTAL_LIMIT, Graph, Op
from situate.data.post_order import post_order
from situate.data.roofline import op_seconds
from situate.errors import GraphError, SituateError, nearest
from situate.validation import check, check_items

Objective = Literal["time", "memory", "throughput"]
Transfers = Literal["overlapped", "blocking", "atomic"]
Memory = Literal["time", "step", "persistent"]
OBJECTIVES: tuple[Objective, ...] = ("time", "memory", "throughput")
"""Objectives to minimise: the makespan in seconds; the peak bytes of the fullest device; the
seconds between steps in steady pipelined operation."""

UNLIMITED = 2**62
"""Capacity of a device without a limit, in bytes."""

LONGEST = 1e300
"""Most seconds that all ops and transfers may take together: sums of times stay finite."""


class Rules(msgspec.Struct, frozen=True):
    """Rules of execution, as settings of the one model.

    Raises:
        SituateError: unknown transfers or memory; atomic transfers with a memory other than
            `persistent`, for nobody knows when in a call a tensor lives.
    """

    name: str
    transfers: Transfers | None = None
    """None: the cluster's. `atomic`: a device runs its ops as one call (dnn-partitioning)."""
    contention: bool = True
    """A channel carries one transfer at a time."""
    signals: bool = True
    """A tensor of size zero without a transfer time of its own occupies nothing on its way."""
    memory: Memory = "time"
    """`time`: live bytes at every instant; `step`: after every op and transfer, in their order
    (REGAL, A.4); `persistent`: persistent bytes only."""

    def __post_init__(self) -> None:
        check_items([self], Rules, lambda _: "rules")
        options = {"transfers": (None, *get_args(Transfers)), "memory": get_args(Memory)}
        for setting, values in options.items():
            value = getattr(self, setting)
            if value not in values:
                hint = nearest(str(value), filter(None, values))
                raise SituateError(f"rules {self.name!r}: unknown {setting} {value!r}{hint}")
        if self.transfers == "atomic" and self.memory != "persistent":
            raise SituateError(
                f"rules {self.name!r}: atomic transfers count persistent bytes alone: "
                f"memory must be 'persistent', got {self.memory!r}"
            )


RULES = {
    rules.name: rules
    for rules in (
        Rules("situate"),
        Rules("regal", transfers="blocking", contention=False, signals=False, memory="step"),
        Rules("doppler", transfers="overlapped", contention=False),
        Rules("dnn-partitioning", transfers="atomic", contention=False, memory="persistent"),
    )
}
"""Rules by name: situate's own, and those of REGAL (Paliwal et al., ICLR 2020), DOPPLER (ICLR 2026)
and Tarnawski et al. (NeurIPS 2020); see docs/execution-model.md."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A graph on a cluster; `costs` are what ops took where they were measured.

    Without a cluster it is the machine that the graph's own file brings (`Graph.machine`), without
    rules those that the file says (`Graph.rules`). A warning names the devices on which the costs
    do not say what an op takes.

    With n ops, d devices and m tensors (the graph's, then one of size zero for every op that
    control edges leave), the arrays are:

    Attributes:
        seconds: (n, d) time of an op on a device; infinite where it cannot run.
        fastest: (n,) time of an op on the fastest device that it may run on.
        size: (m,) bytes.
        producer: (m,) op index.
        consumer_start, consumers: tensor t is consumed by
            `consumers[consumer_start[t]:consumer_start[t + 1]]`.
        transfer_seconds: (m,) the tensor's own transfer time, NaN where the links decide.
        signal: (m,) whether a tensor is a signal, which occupies nothing.
        resident: (m,) see `Tensor`.
        output: (m,) whether a tensor stays to the end of the step, see `Tensor`; where memory is
            counted per step, none does.
        persistent, workspace: (n,) bytes.
        unit: (n,) index of the colocation group of an op, or of the op alone; units are numbered
            by their first op.
        unit_seconds: (units, d) of all ops of a unit; infinite where one cannot run.
        unit_persistent: (units,) bytes.
        allowed: (units, d) whether every op of the unit may and can run on the device, which holds
            the unit.
        runnable: (units, d) the same whatever the device holds.
        capacity: (d,) bytes.
        accelerators: (d,) whether a device is no CPU: under atomic rules those run their ops as one
            call, and pay for what they send and receive.
        latency, bandwidth, channel: (d, d), as in `Cluster`.

    Raises:
        SituateError: an unknown objective, rules or pinned device; rules of one's own by the name
            of others in `RULES`; no cluster for a graph without a machine; a graph without a unit
            of time on links in bytes per second; an op that no device can run or hold; times that
            add up to more than `LONGEST`, or measured workspaces to more than 2^62 bytes.
    """

    graph: Graph
    cluster: Cluster = None  # type: ignore[assignment]  # None becomes the graph's own
    objective: Objective = "time"
    rules: Rules = None  # type: ignore[assignment]  # None becomes the graph's own
    costs: Costs | None = None

    def __post_init__(self) -> None:
        check(self.graph, Graph, "problem: graph")
        object.__setattr__(self, "cluster", self._cluster())
        object.__setattr__(self, "rules", self._rules())
        check_items([self], Problem, lambda _: "problem")
        name = self.rules.name
        if name in RULES and self.rules != RULES[name]:
            raise SituateError(
                f"rules {name!r}: situate knows others by that name; give yours another"
            )
        if self.objective not in OBJECTIVES:
            hint = nearest(str(self.objective), OBJECTIVES)
            raise SituateError(f"unknown objective {self.objective!r}{hint}")
        self._check_unit()
        self._check_placeable()
        self._check_finite()
        if self.costs is not None:
            self._check_workspace()
            for line in estimated(self.graph, self.cluster.devices, self.costs):
                warnings.warn(line, stacklevel=1)  # of this place, so that it is said once

    def _cluster(self) -> Cluster:
        cluster: Cluster | None = self.cluster
        if cluster is None and self.graph.machine:
            return Cluster.of_machine(OWN_MACHINE, self.graph.machine)
        if cluster is None:
            raise SituateError(
                f"graph {self.graph.name!r} brings no machine of its own: give a cluster"
            )
        return cluster

    def _rules(self) -> Rules:
        rules: Rules | str | None = self.rules
        if rules is None and self.graph.rules not in RULES:
            hint = nearest(self.graph.rules, RULES)
            raise GraphError(f"graph {self.graph.name!r}: unknown rules {self.graph.rules!r}{hint}")
        name = self.graph.rules if rules is None else rules
        return find_rules(name) if isinstance(name, str) else name

    def __repr__(self) -> str:
        return f"<Problem: {self.graph!r} on {self.cluster.name!r}, for {self.objective}>"

    @property
    def n(self) -> int:
        """Number of ops."""
        return len(self.graph.ops)

    @property
    def d(self) -> int:
        """Number of devices."""
        return len(self.cluster.devices)

    @property
    def transfers(self) -> Transfers:
        """The transfer mode: the rules' if they have one, else the cluster's."""
        return self.rules.transfers or self.cluster.transfers

    @cached_property
    def seconds(self) -> NDArray[np.float64]:
        return op_seconds(self.graph, self.cluster, self.costs)

    @cached_property
    def _tensors(self) -> tuple[NDArray[np.int64], ...]:
        """size, producer, consumer_start, consumers of all tensors, control tensors last."""
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
    def unit(self) -> NDArray[np.int32]:
        keys = (("group", op.group) if op.group else ("op", op.name) for op in self.graph.ops)
        index: dict[tuple[str, str], int] = {}
        return np.array([index.setdefault(key, len(index)) for key in keys], np.int32)

    @cached_property
    def units(self) -> int:
        """Number of units."""
        return int(self.unit.max()) + 1

    @cached_property
    def fastest(self) -> NDArray[np.float64]:
        allowed = self.allowed[self.unit]
        # `where` instead of `np.where`: a temporary of (n, d) costs ten times as much.
        return np.asarray(self.seconds.min(axis=1, where=allowed, initial=np.inf))

    @cached_property
    def unit_seconds(self) -> NDArray[np.float64]:
        seconds = np.zeros((self.units, self.d))
        np.add.at(seconds, self.unit, self.seconds)
        return seconds

    @cached_property
    def unit_persistent(self) -> NDArray[np.int64]:
        sizes = np.zeros(self.units, np.int64)
        np.add.at(sizes, self.unit, self.persistent)
        return sizes

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        return self.runnable & (self.unit_persistent[:, None] <= self.capacity[None, :])

    def confined(self, part: NDArray[np.int64], allowed: NDArray[np.bool_]) -> Problem:
        """The problem with fewer choices.

        Args:
            part: (units,) for each unit, its unit in the new problem.
            allowed: (units, d) devices of each unit, a subset of those it may run on. A new unit
                may run on devices that all its parts may run on and that can hold all their bytes.
        """
        confined = copy(self)
        # All that hangs on units and on where they may run is found anew.
        for name in ("allowed", "fastest", "units", "unit_persistent", "unit_seconds"):
            vars(confined).pop(name, None)
        vars(confined)["unit"] = part[self.unit].astype(np.int32)
        runnable = np.ones((confined.units, self.d), np.bool_)
        np.logical_and.at(runnable, part, allowed)
        vars(confined)["runnable"] = runnable
        return confined

    @cached_property
    def runnable(self) -> NDArray[np.bool_]:
        """True if the device may and can run the unit, memory left aside."""
        per_op = np.isfinite(self.seconds)
        for j, op in enumerate(self.graph.ops):
            if op.device is not None:
                per_op[j] &= self._pin(op)
        runnable = np.ones((self.units, self.d), np.bool_)
        np.logical_and.at(runnable, self.unit, per_op)
        return runnable

    def _pin(self, op: Op) -> NDArray[np.bool_]:
        devices = self.cluster.devices
        pinned = np.array([op.device in (d.name, d.kind) for d in devices])
        if not pinned.any():
            hint = nearest(str(op.device), self.cluster.names)
            raise GraphError(f"op {op.name!r} is pinned to unknown device {op.device!r}{hint}")
        return pinned

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
        inputs: list[list[int]] = [[] for _ in range(self.n)]
        for producer, consumer in self.graph.edges():
            inputs[consumer].append(producer)
        place = {op: i for i, op in enumerate(self.graph.order)}
        return post_order(self.graph.order, inputs, rank=place.__getitem__)

    @property
    def latency(self) -> NDArray[np.float64]:
        return self.cluster.latency

    @property
    def bandwidth(self) -> NDArray[np.float64]:
        return self.cluster.bandwidth

    @property
    def channel(self) -> NDArray[np.int32]:
        return self.cluster.channel

    def transfer_time(self, tensor: int, source: int, target: int) -> float:
        """Seconds tensor `tensor` takes from device `source` to device `target`."""
        if source == target:
            return 0.0
        own = float(self.transfer_seconds[tensor])
        if own == own:
            return own + self.cluster.synchronisation
        if self.signal[tensor]:
            return self.cluster.synchronisation
        size = float(self.size[tensor])
        link = float(self.latency[source, target]) + size / float(self.bandwidth[source, target])
        return link + self.cluster.synchronisation

    def _check_unit(self) -> None:
        """Times without a unit cannot be added to seconds on a link."""
        between = ~np.eye(self.d, dtype=bool)
        if self.graph.unit or not self.cluster.unit:
            return
        if np.isfinite(self.bandwidth[between]).any():
            raise SituateError(
                f"graph {self.graph.name!r} ({self.graph.source}) has times without a unit and "
                f"cluster {self.cluster.name!r} has links in bytes per second: use identical "
                f"devices (--cluster identical:N, Cluster.identical(N)), or a cluster without a "
                f'unit, whose file says unit = ""'
            )

    def _check_placeable(self) -> None:
        stuck = np.flatnonzero(~self.allowed.any(axis=1))
        if stuck.size:
            op = self.graph.ops[int(np.flatnonzero(self.unit == stuck[0])[0])]
            raise SituateError(f"{self._why_stuck(op, int(stuck[0]))}")

    def _why_stuck(self, op: Op, unit: int) -> str:
        members = np.flatnonzero(self.unit == unit)
        subject = f"group {op.group!r}" if op.group and len(members) > 1 else f"op {op.name!r}"
        runnable = self.runnable[unit]
        if runnable.any():
            persistent, largest = (
                int(self.persistent[members].sum()),
                int(self.capacity[runnable].max()),
            )
            which = "" if runnable.all() else " that can run it"
            return (
                f"{subject} holds {persistent} bytes, more than any device of cluster "
                f"{self.cluster.name!r}{which} ({largest})"
            )
        alone = len(members) == 1 and op.device is None and op.seconds
        why = f": it has seconds for {', '.join(map(repr, op.seconds or ()))}" if alone else ""
        return f"no device of cluster {self.cluster.name!r} can run {subject}{why}"

    @cached_property
    def serial_seconds(self) -> float:
        """Upper bound on the seconds of any schedule: the sum of the longest times of all ops and
        transfers."""
        of_ops, of_tensors = self._longest_times
        with np.errstate(over="ignore"):
            once = (of_tensors + self.cluster.synchronisation).sum()
            return float(of_ops.sum() + (once * (self.d - 1) if self.d > 1 else 0.0))

    @cached_property
    def _longest_times(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Seconds of every op on its slowest device and of every tensor over its slowest link."""
        own, size = self.transfer_seconds, self.size
        of_ops = np.where(np.isfinite(self.seconds), self.seconds, 0.0).max(axis=1)
        linked = np.isnan(own) & ~self.signal
        with np.errstate(over="ignore"):
            return of_ops, np.where(linked, self._slowest(size), np.nan_to_num(own))

    def _check_finite(self) -> None:
        """Check that no sum of times overflows, in any schedule."""
        if self.serial_seconds > LONGEST:
            unit = f" {self.graph.unit}".rstrip()
            raise SituateError(
                f"the times of graph {self.graph.name!r} on cluster {self.cluster.name!r} add up "
                f"to more than {LONGEST}{unit}: look at {self._longest()}"
            )

    def _check_workspace(self) -> None:
        """Check that measured workspaces fit sums of bytes; the graph's own are checked already."""
        total = sum(sum(array.tolist()) for array in (self.size, self.persistent, self.workspace))
        if total > TOTAL_LIMIT:
            largest = self.graph.ops[int(self.workspace.argmax())].name
            raise SituateError(
                f"all sizes of graph {self.graph.name!r} with the workspaces of the cost file are "
                f"{total} bytes, more than 2^62: look at op {largest!r}"
            )

    def _slowest(self, size: NDArray[np.int64]) -> NDArray[np.float64]:
        """Seconds that tensors of these sizes take over the worst of all links."""
        return np.asarray(self.latency.max() + size / self.bandwidth.min())

    def _longest(self) -> str:
        """The longest duration of ops, tensors and the synchronisation that every tensor pays."""
        times = np.concatenate(self._longest_times)[: self.n if self.d == 1 else None]
        item = int(times.argmax())
        if self.d > 1 and self.cluster.synchronisation > times[item]:
            return "the cluster's synchronisation"
        if item < self.n:
            return f"op {self.graph.ops[item].name!r}"
        name = f"tensor {self.graph.tensors[item - self.n].name!r}"
        if np.isnan(self.transfer_seconds[item - self.n]):
            return f"{name} and at the links' bandwidth and latency"
        return name


def find_rules(name: str) -> Rules:
    """The rules of that name.

    Raises:
        SituateError: with the nearest name there is.
    """
    if name not in RULES:
        raise SituateError(f"unknown rules {name!r}{nearest(name, RULES)}")
    return RULES[name]
