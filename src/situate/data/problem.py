"""A problem: a graph on a cluster, with costs and an objective, as flat arrays."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from situate.data.cluster import OWN_MACHINE, Cluster
from situate.data.cost_lookup import estimated
from situate.data.costs import Costs
from situate.data.graph import TOTAL_LIMIT, Graph, Op
from situate.data.problem_arrays import ProblemArrays
from situate.data.rules import RULES, Rules, Transfers, find_rules
from situate.errors import GraphError, SituateError, nearest
from situate.validation import check, check_items

Objective = Literal["time", "memory", "throughput"]
OBJECTIVES: tuple[Objective, ...] = ("time", "memory", "throughput")
"""Objectives to minimise: the makespan in seconds; the peak bytes of the fullest device; the
seconds between steps in steady pipelined operation."""

LONGEST = 1e300
"""Most seconds that all ops and transfers may take together: sums of times stay finite."""


@dataclass(frozen=True, eq=False)
class ProblemParts:
    """The parts of a problem; `Problem` fills in the defaults."""

    graph: Graph
    cluster: Cluster
    objective: Objective
    rules: Rules
    costs: Costs | None


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Problem(ProblemParts):
    """A graph on a cluster, with an objective, the rules of execution and measured costs.

    The default cluster is the graph's own machine (`Graph.machine`), the default rules are those
    of its file (`Graph.rules`). A warning names the devices for which the costs lack ops.

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
        signal: (m,) True for signals, which occupy nothing.
        resident: (m,) see `Tensor`.
        output: (m,) True if a tensor stays to the end of the step, see `Tensor`; False for all if
            memory is counted per step.
        persistent, workspace: (n,) bytes.
        unit: (n,) index of the colocation group of an op, or of the op alone; units are numbered
            by their first op.
        unit_seconds: (units, d) of all ops of a unit; infinite where one cannot run.
        unit_persistent: (units,) bytes.
        allowed: (units, d) True if every op of the unit may and can run on the device, and the
            device can hold the unit.
        runnable: (units, d) the same without regard to memory.
        capacity: (d,) bytes.
        accelerators: (d,) True for devices other than CPUs. Under atomic rules they run their ops
            as one call, and pay for the tensors that they send and receive.
        latency, bandwidth, channel: (d, d), as in `Cluster`.

    Raises:
        SituateError: an unknown objective, rules or pinned device; other rules under a name of
            `RULES`; no cluster for a graph without a machine; a graph without a unit of time on
            links in bytes per second; an op that no device can run or hold; times that add up to
            more than `LONGEST`, or measured workspaces to more than 2^62 bytes.
    """

    def __init__(
        self,
        graph: Graph,
        cluster: Cluster | None = None,
        objective: Objective = "time",
        rules: Rules | str | None = None,
        costs: Costs | None = None,
    ) -> None:
        check(graph, Graph, "problem: graph")
        own_cluster, own_rules = _cluster(graph, cluster), _rules(graph, rules)
        super().__init__(graph, own_cluster, objective, own_rules, costs)
        check_items([self], ProblemParts, lambda _: "problem")
        self._check_names()
        self._check_unit()
        self._check_placeable()
        self._check_finite()
        if self.costs is not None:
            self._check_workspace()
            for line in estimated(self.graph, self.cluster.devices, self.costs):
                warnings.warn(line, stacklevel=1)  # at this line, so that Python shows it once

    def _check_names(self) -> None:
        name = self.rules.name
        # A plan file names its rules, so a name must mean the same everywhere.
        if name in RULES and self.rules != RULES[name]:
            raise SituateError(
                f"rules {name!r}: situate knows others by that name; give yours another"
            )
        if self.objective not in OBJECTIVES:
            hint = nearest(str(self.objective), OBJECTIVES)
            raise SituateError(f"unknown objective {self.objective!r}{hint}")

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
    def _arrays(self) -> ProblemArrays:
        return ProblemArrays(self.graph, self.cluster, self.rules, self.costs)

    @cached_property
    def seconds(self) -> NDArray[np.float64]:
        return self._arrays.seconds

    @cached_property
    def size(self) -> NDArray[np.int64]:
        return self._arrays.size

    @cached_property
    def producer(self) -> NDArray[np.int32]:
        return self._arrays.producer

    @cached_property
    def consumer_start(self) -> NDArray[np.int32]:
        return self._arrays.consumer_start

    @cached_property
    def consumers(self) -> NDArray[np.int32]:
        return self._arrays.consumers

    @cached_property
    def transfer_seconds(self) -> NDArray[np.float64]:
        return self._arrays.transfer_seconds

    @cached_property
    def signal(self) -> NDArray[np.bool_]:
        return self._arrays.signal

    @cached_property
    def resident(self) -> NDArray[np.uint8]:
        return self._arrays.resident

    @cached_property
    def output(self) -> NDArray[np.uint8]:
        return self._arrays.output

    @cached_property
    def persistent(self) -> NDArray[np.int64]:
        return self._arrays.persistent

    @cached_property
    def workspace(self) -> NDArray[np.int64]:
        return self._arrays.workspace

    @cached_property
    def capacity(self) -> NDArray[np.int64]:
        return self._arrays.capacity

    @cached_property
    def accelerators(self) -> NDArray[np.bool_]:
        return self._arrays.accelerators

    @cached_property
    def depth_first(self) -> NDArray[np.int32]:
        """(n,) a topological order with every op just before its first use: depth first through the
        inputs of each op without consumers."""
        return self._arrays.depth_first

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
        return _ConfinedProblem(self, part, allowed)

    @cached_property
    def runnable(self) -> NDArray[np.bool_]:
        """True if the device may and can run the unit, memory left aside."""
        per_op = np.isfinite(self.seconds)
        for j, op in enumerate(self.graph.ops):
            if op.device is not None:
                per_op[j] &= self._pin(op)
        runnable = np.ones((self.units, self.d), np.bool_)
        # A unit runs where all its ops run: `at` combines the rows of equal units.
        np.logical_and.at(runnable, self.unit, per_op)
        return runnable

    def _pin(self, op: Op) -> NDArray[np.bool_]:
        devices = self.cluster.devices
        pinned = np.array([op.device in (d.name, d.kind) for d in devices])
        if not pinned.any():
            hint = nearest(str(op.device), self.cluster.names)
            raise GraphError(f"op {op.name!r} is pinned to unknown device {op.device!r}{hint}")
        return pinned

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
        # NaN marks tensors without a time of their own; NaN differs from itself.
        own = float(self.transfer_seconds[tensor])
        if own == own:
            return own + self.cluster.synchronisation
        if self.signal[tensor]:
            return self.cluster.synchronisation
        size = float(self.size[tensor])
        link = float(self.latency[source, target]) + size / float(self.bandwidth[source, target])
        return link + self.cluster.synchronisation

    @property
    def serial_seconds(self) -> float:
        """Upper bound on the seconds of any schedule: the sum of the longest times of all ops and
        transfers."""
        return self._arrays.serial_seconds

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
        # In Python integers: a sum of int64 could wrap below the limit unnoticed.
        total = sum(sum(array.tolist()) for array in (self.size, self.persistent, self.workspace))
        if total > TOTAL_LIMIT:
            largest = self.graph.ops[int(self.workspace.argmax())].name
            raise SituateError(
                f"all sizes of graph {self.graph.name!r} with the workspaces of the cost file are "
                f"{total} bytes, more than 2^62: look at op {largest!r}"
            )

    def _longest(self) -> str:
        """The longest duration of ops, tensors and the synchronisation that every tensor pays."""
        times = np.concatenate(self._arrays.longest_times)[: self.n if self.d == 1 else None]
        item = int(times.argmax())
        if self.d > 1 and self.cluster.synchronisation > times[item]:
            return "the cluster's synchronisation"
        if item < self.n:
            return f"op {self.graph.ops[item].name!r}"
        name = f"tensor {self.graph.tensors[item - self.n].name!r}"
        if np.isnan(self.transfer_seconds[item - self.n]):
            return f"{name} and at the links' bandwidth and latency"
        return name


class _ConfinedProblem(Problem):
    """A problem with fewer choices and the arrays of the whole problem.

    Its units may have no device left, which proves that the choices were too few. All other checks
    held for the whole problem.

    Args:
        whole, part, allowed: see `Problem.confined`.
    """

    def __init__(self, whole: Problem, part: NDArray[np.int64], allowed: NDArray[np.bool_]) -> None:
        # Not `Problem.__init__`, which would repeat all checks and warnings.
        ProblemParts.__init__(
            self, whole.graph, whole.cluster, whole.objective, whole.rules, whole.costs
        )
        self._whole_arrays = whole._arrays
        self._merged_unit = part[whole.unit].astype(np.int32)
        self._merged_runnable = np.ones((int(self._merged_unit.max()) + 1, whole.d), np.bool_)
        np.logical_and.at(self._merged_runnable, part, allowed)

    @cached_property
    def _arrays(self) -> ProblemArrays:
        return self._whole_arrays

    @cached_property
    def unit(self) -> NDArray[np.int32]:
        return self._merged_unit

    @cached_property
    def runnable(self) -> NDArray[np.bool_]:
        return self._merged_runnable


def _cluster(graph: Graph, cluster: Cluster | None) -> Cluster:
    """The cluster, or the machine that the graph brings."""
    if cluster is None and graph.machine:
        return Cluster.of_machine(OWN_MACHINE, graph.machine)
    if cluster is None:
        raise SituateError(f"graph {graph.name!r} brings no machine of its own: give a cluster")
    return cluster


def _rules(graph: Graph, rules: Rules | str | None) -> Rules:
    """The rules, those of this name, or those that the graph brings."""
    if rules is None and graph.rules not in RULES:
        hint = nearest(graph.rules, RULES)
        raise GraphError(f"graph {graph.name!r}: unknown rules {graph.rules!r}{hint}")
    name = graph.rules if rules is None else rules
    return find_rules(name) if isinstance(name, str) else name
