"""Schedules under atomic rules: a device runs all its ops as one call (dnn-partitioning)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate import _core
from situate.evaluators.simulator import core_problem
from situate.problem import Problem
from situate.schedule import Schedule


def schedule_calls(problem: Problem, placement: NDArray[np.int32]) -> Schedule:
    """The schedule of a placement (n,) under atomic rules (Tarnawski et al., NeurIPS 2020).

    A device that pays for its transfers receives, computes and sends in turn within its call. A
    tensor between two such devices is listed twice: while its producer's device sends it and
    while its consumer's receives it. Ops on a CPU run one by one, any number at once. Where calls
    wait for one another, the makespan is infinite and the times mean nothing.
    """
    makespan, begin, _, op_end = _core.calls(core_problem(problem), placement)
    start, end = _ready(problem, op_end), op_end.copy()
    transfers = _Transfers(problem, placement, begin)
    for device in np.flatnonzero(problem.accelerators):
        _fill_call(problem, placement, int(device), transfers, start, end)
    rows = sorted(transfers.rows, key=lambda row: (row[3], row[4], row[0]))
    tensor, source, target, starts, ends = zip(*rows, strict=True) if rows else ((),) * 5
    peak = np.zeros(problem.d, np.int64)
    np.add.at(peak, placement, problem.persistent)
    return Schedule(
        placement,
        start,
        end,
        np.array(tensor, np.int32),
        np.array(source, np.int32),
        np.array(target, np.int32),
        np.array(starts, np.float64),
        np.array(ends, np.float64),
        float(makespan),
        peak,
        "calls",
    )


def _ready(problem: Problem, op_end: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) when all that an op reads is made; what a call makes is when the call ends."""
    ready = np.zeros(problem.n)
    producer = np.repeat(problem.producer, np.diff(problem.consumer_start))
    np.maximum.at(ready, problem.consumers, op_end[producer])
    return ready


class _Transfers:
    """Tensors that enter and leave each device, and the rows written for them."""

    def __init__(
        self,
        problem: Problem,
        placement: NDArray[np.int32],
        begin: NDArray[np.float64],
    ) -> None:
        self.begin = begin
        self.rows: list[tuple[int, int, int, float, float]] = []
        self.entering: dict[int, list[tuple[int, int, float]]] = {}
        self.leaving: dict[int, list[tuple[int, int, float]]] = {}
        for tensor, producer in enumerate(problem.producer.tolist()):
            source = int(placement[producer])
            first, last = problem.consumer_start[tensor : tensor + 2]
            users = {int(placement[op]) for op in problem.consumers[first:last]}
            targets = sorted(users - {source})
            costs = [problem.transfer_time(tensor, source, target) for target in targets]
            for target, cost in zip(targets, costs, strict=True):
                self.entering.setdefault(target, []).append((tensor, source, cost))
            if targets:
                cost, slowest = max(costs), targets[costs.index(max(costs))]
                self.leaving.setdefault(source, []).append((tensor, slowest, cost))


def _fill_call(
    problem: Problem,
    placement: NDArray[np.int32],
    device: int,
    transfers: _Transfers,
    start: NDArray[np.float64],
    end: NDArray[np.float64],
) -> None:
    """Receives, then the ops in topological order, then sends, one after the other."""
    now = float(transfers.begin[device])
    for tensor, source, cost in transfers.entering.get(device, []):
        transfers.rows.append((tensor, source, device, now, now + cost))
        now += cost
    for op in problem.graph.order:
        if placement[op] == device:
            start[op] = now
            now += float(problem.seconds[op, device])
            end[op] = now
    for tensor, target, cost in transfers.leaving.get(device, []):
        transfers.rows.append((tensor, device, target, now, now + cost))
        now += cost
