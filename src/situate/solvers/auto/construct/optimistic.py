"""Lower bounds on the score of a placement, for any order of the ops and any decoder."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from situate import _core
from situate.bounds.live import takes_time
from situate.bounds.rounding import rounding
from situate.data.arrays import Floats, Placements
from situate.data.problem import Problem
from situate.solvers.search import Search


def least_scores(search: Search, placements: Placements) -> list[tuple[int, float]]:
    """Lower bound on the score (excess bytes, value) of every placement."""
    problem = search.problem
    peak = _least_peaks(problem, placements)
    # Python's integers, because a sum of bytes may exceed 64 bits.
    excess = [sum(row) for row in np.maximum(0, peak - problem.capacity).tolist()]
    if problem.objective == "memory":
        value = peak.max(axis=1).astype(np.float64)
    elif problem.objective == "throughput":
        # Sums in another order round differently, and a bound must not exceed a schedule's value.
        value = _periods(problem, placements) * (1 - rounding(problem))
    elif problem.transfers == "atomic":
        value = np.array(
            [
                _core.simulation.atomic_calls(search.simulator.core, placement)[0]
                for placement in placements
            ]
        )
    else:
        value = _least_makespans(problem, placements) * (1 - rounding(problem))
    return list(zip(excess, value.tolist(), strict=True))


def _periods(problem: Problem, placements: Placements) -> Floats:
    """(k,) periods of placements, independent of the order; a batched `Schedule.period`."""
    # (k, d + channels) loads; each op adds to one device per placement.
    every = np.arange(len(placements))
    load = np.zeros((len(placements), problem.d + len(problem.cluster.channels)))
    for op in range(problem.n):
        load[every, placements[:, op]] += problem.seconds[op, placements[:, op]]
    for tensor in np.flatnonzero(~problem.signal).tolist():
        _add_transfers(problem, tensor, placements, load)
    return np.asarray(load.max(axis=1))


def _add_transfers(problem: Problem, tensor: int, placements: Placements, load: Floats) -> None:
    """Add a tensor's transfers to the loads (k, d + channels) of devices, then channels."""
    every, atomic = np.arange(len(placements)), problem.transfers == "atomic"
    source, leaving = placements[:, problem.producer[tensor]], np.zeros(len(placements))
    moves = _moves(problem, tensor)
    for target in range(problem.d):
        sent = _read_on(problem, tensor, target, placements) & (source != target)
        seconds = np.where(sent, moves[source, target], 0.0)
        # (k,) a tensor leaves an accelerator once, in the time of its slowest receiver.
        leaving = np.maximum(leaving, seconds)
        if problem.transfers == "blocking":
            load[every, source] += seconds
        if problem.transfers == "blocking" or (atomic and problem.accelerators[target]):
            load[:, target] += seconds
        if not atomic and problem.rules.contention:
            load[every, problem.d + problem.channel[source, target]] += seconds
    if atomic:
        load[every, source] += np.where(problem.accelerators[source], leaving, 0.0)


def _read_on(
    problem: Problem, tensor: int, device: int, placements: Placements
) -> NDArray[np.bool_]:
    """(k,) True if the device has a reader of the tensor."""
    first, last = problem.consumer_start[tensor : tensor + 2]
    return np.asarray((placements[:, problem.consumers[first:last]] == device).any(axis=1))


def _least_makespans(problem: Problem, placements: Placements) -> Floats:
    """(k,) the larger of the longest path, with undelayed transfers, and the busiest device."""
    every = np.arange(len(placements))
    # (k, n) earliest ends, with every device free and every channel idle, and (k, d) loads.
    end, load = np.zeros(placements.shape), np.zeros((len(placements), problem.d))
    for op in problem.graph.order:
        here, start = placements[:, op], np.zeros(len(placements))
        for tensor in _inputs(problem, op):
            producer = problem.producer[tensor]
            there = placements[:, producer]
            start = np.maximum(start, end[:, producer] + _moves(problem, tensor)[there, here])
        end[:, op] = start + problem.seconds[op, here]
        load[every, here] += problem.seconds[op, here]
    return np.asarray(np.maximum(end.max(axis=1), load.max(axis=1)))


def _least_peaks(problem: Problem, placements: Placements) -> NDArray[np.int64]:
    """(k, d) lower bounds on peak bytes.

    They count persistent bytes, plus the largest need of an op that takes time. An op's need is its
    inputs, outputs and workspace, and tensors from its ancestors to its descendants on the same
    device.
    """
    every = np.arange(len(placements))
    persistent = np.zeros((len(placements), problem.d), np.int64)
    for op in range(problem.n):
        persistent[every, placements[:, op]] += problem.persistent[op]
    if problem.rules.memory == "persistent":
        return persistent
    peak, before = persistent.copy(), _before(problem)
    for op in np.flatnonzero(takes_time(problem)).tolist():
        here = placements[:, op]
        need = persistent[every, here] + problem.workspace[op]
        for tensor in range(len(problem.size)):
            need += _live(problem, tensor, op, placements, before)
        # Ops on a device run one at a time, so the largest need counts.
        peak[every, here] = np.maximum(peak[every, here], need)
    return peak


def _live(
    problem: Problem, tensor: int, op: int, placements: Placements, before: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """(k,) bytes of a tensor that are on the device of a running op in any schedule."""
    first, last = problem.consumer_start[tensor : tensor + 2]
    producer, readers = problem.producer[tensor], problem.consumers[first:last]
    here, size = placements[:, op], problem.size[tensor]
    at_home = (placements[:, producer] == here) & (problem.resident[tensor] == 0)
    # A running op holds its outputs on its own device, unless they are parameters and count as
    # persistent.
    if producer == op:
        return np.where(at_home, size, 0)
    # Its inputs are here too: made here, or received as copies, even of parameters.
    if op in readers:
        return np.where(at_home | (placements[:, producer] != here), size, 0)
    # Any other tensor is live for certain only if it is made before the op and read after it.
    if not before[producer, op]:
        return np.zeros(len(placements), np.int64)
    behind = readers[before[op, readers]]
    needed_later = (placements[:, behind] == here[:, None]).any(axis=1) | (
        problem.output[tensor] == 1
    )
    return np.where(at_home & needed_later, size, 0)


def _before(problem: Problem) -> NDArray[np.bool_]:
    """(n, n) True if the first op must end before the second starts."""
    before = np.zeros((problem.n, problem.n), np.bool_)
    for op in problem.graph.order:
        for tensor in _inputs(problem, op):
            producer = problem.producer[tensor]
            # Ancestors of a producer are ancestors of its reader; ops are in topological order.
            before[:, op] |= before[:, producer]
            before[producer, op] = True
    return before


def _inputs(problem: Problem, op: int) -> Iterator[int]:
    """Tensors that an op reads."""
    for tensor in range(len(problem.size)):
        first, last = problem.consumer_start[tensor : tensor + 2]
        if op in problem.consumers[first:last]:
            yield tensor


def _moves(problem: Problem, tensor: int) -> Floats:
    """(d, d) seconds of the tensor from device to device."""
    devices = range(problem.d)
    return np.array([[problem.transfer_time(tensor, a, b) for b in devices] for a in devices])
