"""Busy time of devices and channels, which limits steady pipelined operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Floats
from situate.data.topology import edge_tensors

if TYPE_CHECKING:
    from situate.data.problem import Problem
    from situate.schedule.arrays import ScheduleArrays

Indices = NDArray[np.integer[Any]]


def device_seconds(schedule: ScheduleArrays, problem: Problem) -> Floats:
    """(d,) seconds of each device's ops, in blocking mode also of its transfers."""
    if problem.transfers == "atomic":
        return loads(problem, schedule.placement)
    d = problem.d
    of_ops = problem.seconds[np.arange(problem.n), schedule.placement]
    busy = np.bincount(schedule.placement, of_ops, minlength=d)
    if problem.transfers == "blocking":
        moves = ~problem.signal[schedule.tensor]
        durations = move_seconds(schedule, problem)[moves]
        # A blocking transfer stops sender and receiver.
        busy += np.bincount(schedule.source[moves], durations, minlength=d)
        busy += np.bincount(schedule.target[moves], durations, minlength=d)
    return np.asarray(busy, np.float64)


def channel_seconds(schedule: ScheduleArrays, problem: Problem) -> Floats:
    """(c,) seconds of each channel's transfers; signals occupy none."""
    moves = ~problem.signal[schedule.tensor]
    channel = problem.channel[schedule.source[moves], schedule.target[moves]]
    durations = move_seconds(schedule, problem)[moves]
    busy = np.bincount(channel, durations, minlength=len(problem.cluster.channels))
    return np.asarray(busy, np.float64)


def period(schedule: ScheduleArrays, problem: Problem) -> float:
    """Seconds between steps in steady operation: the busiest device or channel.

    Channels without contention carry any number of transfers at once, so they set no limit.
    """
    busiest = float(device_seconds(schedule, problem).max())
    if problem.transfers == "atomic" or not problem.rules.contention:
        return busiest
    return max(busiest, float(channel_seconds(schedule, problem).max(initial=0.0)))


def move_seconds(schedule: ScheduleArrays, problem: Problem) -> Floats:
    """(k,) seconds that each of the schedule's transfers takes."""
    tensor, ends = schedule.tensor, (schedule.source, schedule.target)
    return transfer_seconds(problem, tensor, *ends)


def transfer_seconds(
    problem: Problem,
    tensor: Indices,
    source: Indices,
    target: Indices,
) -> Floats:
    """(k,) seconds of tensors between pairs of different devices, as `Problem.transfer_time`."""
    own, size = problem.transfer_seconds[tensor], problem.size[tensor].astype(np.float64)
    with np.errstate(over="ignore"):  # a tensor with seconds of its own may fit no link
        link = problem.latency[source, target] + size / problem.bandwidth[source, target]
    link = np.where(problem.signal[tensor], 0.0, link)
    return np.asarray(np.where(np.isnan(own), link, own) + problem.cluster.synchronisation)


def loads(problem: Problem, placement: NDArray[np.int32]) -> Floats:
    """(d,) load of each device under atomic rules (Tarnawski et al., NeurIPS 2020).

    A device's load is the seconds of its ops and, on an accelerator, of every tensor that enters or
    leaves it, once per tensor. Signals take no time. If a tensor's time depends on the receiver,
    the longest time counts for the sender.
    """
    d = problem.d
    of_ops = problem.seconds[np.arange(problem.n), placement]
    tensor, source, target, is_longest = crossings(problem, placement)
    durations = transfer_seconds(problem, tensor, source, target)
    moved = np.bincount(target, durations, minlength=d)
    moved += np.bincount(source[is_longest], durations[is_longest], minlength=d)
    load = np.bincount(placement, of_ops, minlength=d)
    return np.asarray(load + np.where(problem.accelerators, moved, 0.0))


def crossings(
    problem: Problem, placement: NDArray[np.int32]
) -> tuple[Indices, Indices, Indices, NDArray[np.bool_]]:
    """Every tensor but signals with every other device that consumes it, by tensor, then device.

    Returns:
        tensor, source, target: (k,) indices.
        is_longest: (k,) true once per tensor, at the first target with its longest transfer.
    """
    d = problem.d
    tensor = edge_tensors(problem)
    target = placement[problem.consumers]
    crosses = (target != placement[problem.producer[tensor]]) & ~problem.signal[tensor]
    # Tensor and target as one number, so that `unique` leaves a pair once: (edges,) -> (k,).
    tensor, target = np.divmod(np.unique(tensor[crosses] * d + target[crosses]), d)
    source = placement[problem.producer[tensor]]
    # Rows of a tensor are contiguous, its longest transfer first: the first row is `is_longest`.
    longest_first = np.lexsort((-transfer_seconds(problem, tensor, source, target), tensor))
    _, first = np.unique(tensor[longest_first], return_index=True)
    is_longest = np.zeros(len(tensor), np.bool_)
    is_longest[longest_first[first]] = True
    return tensor, source, target, is_longest
