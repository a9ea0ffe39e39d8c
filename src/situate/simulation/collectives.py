"""A plan of parts with collectives in place of its exchanges, each one timed op on all its devices.

The seconds of a collective are those of `situate.language.training.collectives`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.language.training.collectives import (
    START,
    exchange_seconds,
    gather_seconds,
    reduce_seconds,
)
from situate.language.training.machine import Machine, gpu_devices, machine_of
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import DecoderName, decode, rising
from situate.simulation.exchanges import Exchange, exchanges


@dataclass(frozen=True)
class CollectiveStep:
    """A step in which collectives take the place of exchanges.

    Attributes:
        problem: of the step, with an op for each collective and device.
        schedule: in the order of the plan.
        seconds: of each collective.
        kinds: of the collectives.
    """

    problem: Problem
    schedule: Schedule
    seconds: tuple[float, ...]
    kinds: tuple[str, ...]


def in_collectives(problem: Problem, schedule: Schedule) -> CollectiveStep | None:
    """The step of a plan with a collective in place of each exchange among all parts.

    A collective begins on a device when all parts have their sources and the device is free, and
    keeps the device busy. Other exchanges, and those between parts on one device, stay as they are.
    None if there is no exchange to replace, or if links within the nodes differ.
    """
    if problem.graph.cuts is None or problem.transfers != "overlapped":
        return None
    team = _Team.of(problem)
    if team is None:
        return None
    timed = []
    for exchange in exchanges(problem.graph):
        seconds = team.seconds(exchange, schedule)
        if seconds is not None:
            timed.append((exchange, seconds))
    if not timed:
        return None
    rewriting = _Rewriting(problem.graph, schedule, timed)
    step = Problem(rewriting.graph, problem.cluster, problem.objective, problem.rules)
    order = rising(step, rewriting.start)
    decoder: DecoderName = "serial" if schedule.decoder == "serial" else "eager"
    own = decode(step, rewriting.placement, order, decoder)
    kinds = tuple(exchange.kind for exchange, _ in timed)
    return CollectiveStep(step, own, tuple(seconds for _, seconds in timed), kinds)


@dataclass(frozen=True)
class _Team:
    """The links of the devices that take part.

    Attributes:
        rank: by device, its number among the accelerators, node by node.
    """

    problem: Problem
    machine: Machine
    rank: dict[int, int]

    @classmethod
    def of(cls, problem: Problem) -> _Team | None:
        """The accelerators; None if nodes or the links within them differ."""
        try:
            machine, devices = machine_of(problem.cluster), gpu_devices(problem.cluster)
        except SituateError:
            return None
        for first in range(0, len(devices), machine.node):
            node = devices[first : first + machine.node]
            links = problem.bandwidth[np.ix_(node, node)][~np.eye(len(node), dtype=bool)]
            if len(set(links.tolist())) > 1:
                return None
        return cls(problem, machine, {device: i for i, device in enumerate(devices)})

    def seconds(self, exchange: Exchange, schedule: Schedule) -> float | None:
        """Seconds of a collective; None if parts share a device or run on CPUs."""
        devices = [int(schedule.placement[own[-1]]) for own in _makers(self.problem, exchange)]
        ranks = sorted(self.rank.get(device, -1) for device in devices)
        if ranks[0] < 0 or len(set(ranks)) < len(ranks):
            return None
        size, stride = np.full(1, float(len(ranks))), np.full(1, float(np.diff(ranks).max()))
        sizes = [self.problem.graph.tensors[t].size for t in exchange.sources]
        if exchange.kind == "all_gather":
            seconds = gather_seconds(self.machine, size, stride, float(sum(sizes)))
        elif exchange.kind == "reduce_scatter":
            seconds = gather_seconds(self.machine, size, stride, float(max(sizes)))
        elif exchange.kind == "all_reduce":
            seconds = reduce_seconds(self.machine, size, stride, float(max(sizes)))
        else:
            largest = np.full(1, float(max(sizes)))
            seconds = exchange_seconds(self.machine, size, largest, 1) + START
        return float(seconds[0])


def _makers(problem: Problem, exchange: Exchange) -> list[list[int]]:
    """By part, the ops that make its results."""
    tensors = problem.graph.tensors
    return [[tensors[t].producer for t in own] for own in exchange.results]


class _Rewriting:
    """The graph with collectives, and the device and the start of each op.

    Attributes:
        graph: of the step.
        placement: (n,) devices.
        start: (n,) the start of an op in the plan; of a collective, the end of its last source.
    """

    def __init__(
        self, graph: Graph, schedule: Schedule, timed: Sequence[tuple[Exchange, float]]
    ) -> None:
        self._old, self._schedule = graph, schedule
        replaced = {op for exchange, _ in timed for own in exchange.ops for op in own}
        others = [j for j in range(len(graph.ops)) if j not in replaced]
        # By op of the plan, its number here; the maker of a result has that of its collective.
        self._number = {j: i for i, j in enumerate(others)}
        self._ops: list[Op] = [graph.ops[j] for j in others]
        self._devices: list[int] = schedule.placement[others].tolist()
        self._starts: list[float] = schedule.start[others].tolist()
        self._collectives: dict[int, list[int]] = defaultdict(list)
        # Sources are read from the old schedule, so collectives come after all ops that stay.
        for k, (exchange, seconds) in enumerate(timed):
            self._add_ops(k, exchange, seconds)
        # A part may make the same result once for each reader; the collective makes it once.
        twins = {own[0]: own[1:] for exchange, _ in timed for own in exchange.results}
        self.graph = replace(
            graph,
            ops=tuple(self._ops),
            tensors=tuple(self._tensors(twins)),
            control=tuple(self._control([exchange for exchange, _ in timed])),
        )
        self.placement = np.array(self._devices, np.int32)
        self.start = np.array(self._starts)

    def _maker(self, tensor: int) -> int:
        return self._old.tensors[tensor].producer

    def _add_ops(self, k: int, exchange: Exchange, seconds: float) -> None:
        """Add an op of a collective for each part."""
        ready = float(max(self._schedule.end[self._maker(t)] for t in exchange.sources))
        for part, results in enumerate(exchange.results):
            # The op of a collective takes the place, phase and module of the op it replaces.
            number, like = len(self._ops), self._maker(results[0])
            self._ops.append(_collective(self._old.ops[like], k, exchange.kind, seconds))
            self._devices.append(int(self._schedule.placement[like]))
            self._starts.append(ready)
            self._collectives[exchange.sources[part]].append(number)
            self._number |= {self._maker(t): number for t in results}

    def _tensors(self, twins: dict[int, tuple[int, ...]]) -> Iterator[Tensor]:
        """Tensors that no collective replaces, each with its readers here.

        Args:
            twins: by result of a part, others that hold the same.
        """
        copies = {t for own in twins.values() for t in own}
        for t, tensor in enumerate(self._old.tensors):
            if tensor.producer not in self._number or t in copies:
                continue
            alike = (t, *twins.get(t, ()))
            readers = {reader for own in alike for reader in self._readers(own)}
            yield msgspec.structs.replace(
                tensor,
                producer=self._number[tensor.producer],
                consumers=tuple(sorted(readers)),
                output=any(self._old.tensors[own].output for own in alike),
            )

    def _readers(self, tensor: int) -> Iterator[int]:
        """Ops that read a tensor: collectives, and ops that no collective replaces."""
        yield from self._collectives[tensor]
        for reader in self._old.tensors[tensor].consumers:
            number = self._number.get(reader)
            # A replaced reader has the number of its collective, which is counted above.
            if number is not None and self._ops[number] is self._old.ops[reader]:
                yield number

    def _control(self, replaced: Sequence[Exchange]) -> Iterator[tuple[int, int]]:
        """Control edges: those of the plan, and from each source to the collective of others."""
        for before, after in self._old.control:
            if before in self._number and after in self._number:
                yield self._number[before], self._number[after]
        for exchange in replaced:
            for part, results in enumerate(exchange.results):
                own = self._number[self._maker(results[0])]
                # Its own source is a tensor that it reads; those of others are waited for.
                for other, source in enumerate(exchange.sources):
                    if other != part:
                        yield self._number[self._maker(source)], own


def _collective(like: Op, number: int, kind: str, seconds: float) -> Op:
    """A part's op of a collective, in the place of the op that makes its result."""
    return msgspec.structs.replace(
        like,
        name=f"part{like.part}/collective{number}/{kind}",
        kind=f"collective.{kind}",
        seconds={"*": seconds},
        flops=0,
        traffic=0,
        workspace=0,
        group=None,
        signature="",
    )
