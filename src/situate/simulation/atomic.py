"""Schedules under atomic rules: a device runs all its ops as one call (dnn-partitioning)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate import _core
from situate.data.arrays import Floats
from situate.data.core_problem import core_problem
from situate.data.problem import Problem
from situate.data.topology import edge_tensors
from situate.schedule.schedule import Schedule

Indices = NDArray[np.int32]
"""Indices of tensors or devices."""

_Row = tuple["_Transfers", Floats, Floats]
"""Transfers, when each starts and when it ends."""

_Table = tuple[Indices, Indices, Indices, Floats, Floats]
"""Tensors, sources, targets, starts and ends of transfers."""


def schedule_calls(
    problem: Problem, placement: NDArray[np.int32], core: _core.problem.Problem | None = None
) -> Schedule:
    """The schedule of a placement (n,) under atomic rules (Tarnawski et al., NeurIPS 2020).

    A device that pays for its transfers receives, computes and sends in turn within its call. A
    tensor between two such devices is listed twice: for the sender and for the receiver. A signal
    that takes time is listed once, outside all calls. A CPU runs any number of ops at once. If
    calls wait for one another, the makespan and all times are infinite.

    Args:
        problem, placement: of the schedule.
        core: the core's copy of the problem, if there is one.
    """
    makespan, begin, _, op_end = _core.simulation.atomic_calls(
        core or core_problem(problem), placement
    )
    if not np.isfinite(makespan):
        begin, op_end = np.full(problem.d, np.inf), np.full(problem.n, np.inf)
    crossing = _crossing(problem, placement)
    signal = problem.signal[crossing.tensor]
    received, signalled = crossing.of(~signal), crossing.of(signal & (crossing.seconds > 0))
    slowest = received.slowest_of_each_tensor()
    start, end = _ready(problem, placement, op_end), op_end.copy()
    order = np.array(problem.graph.order, np.int32)
    rows: list[_Row] = [_signalled(signalled, op_end[problem.producer[signalled.tensor]])]
    for device in np.flatnonzero(problem.accelerators):
        ops = order[placement[order] == device]
        entering, leaving = (
            received.of(received.target == device),
            slowest.of(slowest.source == device),
        )
        # A call receives, then computes, then sends.
        durations = entering.seconds, problem.seconds[ops, device], leaving.seconds
        receives, (start[ops], end[ops]), sends = _in_turn(begin[device], *durations)
        rows += [(entering, *receives), (leaving, *sends)]
    peak = np.zeros(problem.d, np.int64)
    # (n,) -> (d,): unlike `peak[placement] += ...`, which counts one op a device, this adds up all.
    np.add.at(peak, placement, problem.persistent)
    tensor, source, target, starts, ends = _table(rows)
    by_start = np.argsort(np.concatenate((start, starts)), kind="stable").astype(np.int32)
    occupying = np.concatenate((np.ones(problem.n, np.bool_), ~problem.signal[tensor]))
    return Schedule(
        placement,
        start,
        end,
        tensor,
        source,
        target,
        starts,
        ends,
        by_start[occupying[by_start]],
        float(makespan),
        peak,
        "calls",
    )


def _in_turn(begin: float, *parts: Floats) -> list[tuple[Floats, Floats]]:
    """Starts and ends of consecutive items with these seconds, within each part."""
    # (items + 1,) instants: an item starts at one and ends at the next.
    times = np.cumsum(np.concatenate(([begin], *parts)))
    first = np.cumsum([len(part) for part in parts[:-1]])
    return list(zip(np.split(times[:-1], first), np.split(times[1:], first), strict=True))


def _ready(problem: Problem, placement: Indices, op_end: Floats) -> Floats:
    """(n,) times from which all inputs of an op exist. Outputs of a call exist when the call ends,
    and a signal to another device takes time."""
    ready = np.zeros(problem.n)
    # (m,) -> (edges,): the tensor of each entry of `consumers`.
    tensor = edge_tensors(problem)
    producer = problem.producer[tensor]
    crosses = placement[producer] != placement[problem.consumers]
    delay = np.where(problem.signal[tensor] & crosses, problem.cluster.synchronisation, 0.0)
    # (edges,) -> (n,): the latest input of an op.
    np.maximum.at(ready, problem.consumers, op_end[producer] + delay)
    return ready


@dataclass(frozen=True, eq=False)
class _Transfers:
    """Transfers between devices, by tensor and then target, and the seconds that each takes."""

    tensor: Indices
    source: Indices
    target: Indices
    seconds: Floats

    def of(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> _Transfers:
        """The transfers at these indices, or where this is true."""
        return _Transfers(
            self.tensor[which], self.source[which], self.target[which], self.seconds[which]
        )

    def slowest_of_each_tensor(self) -> _Transfers:
        """A tensor leaves once, at the cost of its slowest receiver; of equal ones the first."""
        # By tensor, then from the slowest to the fastest, then by target: `unique` keeps the first.
        falling = self.of(np.lexsort((self.target, -self.seconds, self.tensor)))
        return falling.of(np.unique(falling.tensor, return_index=True)[1])


def _signalled(signalled: _Transfers, finish_times: Floats) -> _Row:
    return signalled, finish_times, finish_times + signalled.seconds


def _crossing(problem: Problem, placement: Indices) -> _Transfers:
    """The transfers of a placement (n,): a device receives each tensor once."""
    of_edge = edge_tensors(problem)
    source, target = placement[problem.producer[of_edge]], placement[problem.consumers]
    # A tensor and a target as one number, so that `unique` leaves one transfer for all consumers of
    # a tensor on a device: (edges,) -> (transfers,).
    pairs = (of_edge * problem.d + target)[source != target]
    tensor, target = (a.astype(np.int32) for a in np.divmod(np.unique(pairs), problem.d))
    source = placement[problem.producer[tensor]]
    own, size = problem.transfer_seconds[tensor], problem.size[tensor].astype(np.float64)
    link = problem.latency[source, target] + size / problem.bandwidth[source, target]
    # NaN stands for a tensor without seconds of its own, which takes its link; a signal takes none.
    seconds = np.where(np.isnan(own), np.where(problem.signal[tensor], 0.0, link), own)
    return _Transfers(tensor, source, target, seconds + problem.cluster.synchronisation)


def _table(rows: list[_Row]) -> _Table:
    """All transfers, sorted by start, end and tensor."""
    tensor = np.concatenate([t.tensor for t, _, _ in rows])
    source = np.concatenate([t.source for t, _, _ in rows])
    target = np.concatenate([t.target for t, _, _ in rows])
    start = np.concatenate([start for _, start, _ in rows])
    end = np.concatenate([end for _, _, end in rows])
    # The last key counts first.
    turn = np.lexsort((tensor, end, start))
    return tensor[turn], source[turn], target[turn], start[turn], end[turn]
