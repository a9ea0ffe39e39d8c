"""Rejects a schedule that breaks the execution model, from the schedule's own times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from situate.data.arrays import Floats
from situate.schedule.items import Indices, channel_items, device_items
from situate.schedule.load import move_seconds
from situate.schedule.memory import peaks
from situate.schedule.messages import Replay, close, fail
from situate.schedule.verify_atomic import check_calls

if TYPE_CHECKING:
    from situate.data.problem import Problem
    from situate.schedule.arrays import ScheduleArrays


def verify(schedule: ScheduleArrays, problem: Problem, allow_overflow: bool = False) -> None:
    """See `Schedule.verify`."""
    _check_shapes(schedule, problem)
    replay = Replay(schedule, problem)
    _check_groups(replay)
    _check_devices(replay)
    _check_decoder(schedule, problem)
    if schedule.decoder == "calls":
        check_calls(replay)
    else:
        _check_op_seconds(replay)
        _check_needed(replay)
        _check_transfers(replay)
        _check_inputs(replay)
        _check_overlap(replay, "device", *device_items(schedule, problem))
        _check_overlap(replay, "channel", *channel_items(schedule, problem))
        _check_service(replay)
    _check_sequence(replay)
    _check_makespan(replay)
    _check_peaks(replay)
    if not allow_overflow:
        _check_capacity(replay)


def _check_shapes(s: ScheduleArrays, problem: Problem) -> None:
    if problem.transfers == "atomic" and not np.isfinite(s.makespan):
        fail("the calls of its devices wait for one another")
    n, d, m, k = problem.n, problem.d, len(problem.size), len(s.tensor)
    lengths = dict.fromkeys(("placement", "start", "end"), n)
    lengths |= dict.fromkeys(("source", "target", "transfer_start", "transfer_end"), k)
    for name, length in (lengths | {"peak": d}).items():
        if getattr(s, name).shape != (length,):
            fail(f"{name} has shape {getattr(s, name).shape}, not {(length,)}")
    for name in ("start", "end", "transfer_start", "transfer_end"):
        if not (np.isfinite(getattr(s, name)) & (getattr(s, name) >= 0)).all():
            fail(f"{name} holds a time that is negative or not finite")
    for name, size in {"placement": d, "tensor": m, "source": d, "target": d}.items():
        if not ((getattr(s, name) >= 0) & (getattr(s, name) < size)).all():
            fail(f"{name} holds an index outside 0..{size - 1}")


def _check_decoder(s: ScheduleArrays, problem: Problem) -> None:
    """Check the decoder: calls are for atomic rules, which time a step only by calls."""
    atomic = problem.transfers == "atomic"
    if s.decoder == "calls" and not atomic:
        fail(f"it consists of calls, which rules {problem.rules.name!r} do not have")
    if s.decoder != "calls" and atomic and problem.objective == "time":
        fail(f"rules {problem.rules.name!r} time a step by calls, not by {s.decoder!r}")


def _check_groups(replay: Replay) -> None:
    p, placement = replay.problem, replay.schedule.placement
    # NumPy keeps the last of several assignments to a unit; backwards, that is the first op's.
    first = np.empty(p.units, np.int64)
    first[p.unit[::-1]] = np.arange(p.n)[::-1]
    for j in np.flatnonzero(placement != placement[first[p.unit]]):
        other = first[p.unit[j]]
        fail(
            f"group {p.graph.ops[j].group!r} is split: {replay.op(other)} runs on "
            f"{replay.device(placement[other])}, {replay.op(j)} on {replay.device(placement[j])}"
        )


def _check_devices(replay: Replay) -> None:
    """Check that every op is on its pinned device, if any, and on a device that can run it."""
    p, placement = replay.problem, replay.schedule.placement
    for op, d in zip(p.graph.ops, placement.tolist(), strict=True):
        device = p.cluster.devices[d]
        if op.device is not None and op.device not in (device.name, device.kind):
            fail(f"op {op.name!r} is pinned to {op.device!r}, but runs on {device.name!r}")
    for j in np.flatnonzero(~np.isfinite(p.seconds[np.arange(p.n), placement])):
        fail(f"{replay.op(j)} cannot run on {replay.device(placement[j])}")


def _check_op_seconds(replay: Replay) -> None:
    s, p = replay.schedule, replay.problem
    seconds = p.seconds[np.arange(p.n), s.placement]
    for j in np.flatnonzero(~close(s.end, s.start + seconds)):
        fail(f"{replay.op(j)} takes {s.end[j] - s.start[j]}, not {seconds[j]}")


def _check_needed(replay: Replay) -> None:
    """Every tensor is sent once to every other device that consumes it; free signals need not."""
    s, p = replay.schedule, replay.problem
    tensor, target = replay.edges()
    crosses = target != s.placement[p.producer[tensor]]
    if p.cluster.synchronisation == 0:
        crosses &= ~p.signal[tensor]
    # Tensor and receiver as one number, so that sets of transfers can be compared.
    needed = tensor[crosses] * p.d + target[crosses]
    pairs = s.tensor.astype(np.int64) * p.d + s.target
    for key in np.setdiff1d(needed, pairs):
        fail(f"{replay.move(key)} is missing")
    for key in np.setdiff1d(pairs, needed):
        fail(f"{replay.move(key)} is not needed")
    keys, counts = np.unique(pairs, return_counts=True)
    for key in keys[counts > 1]:
        fail(f"{replay.move(key)} happens more than once")


def _check_transfers(replay: Replay) -> None:
    """Each starts on its producer's device, after its end, and takes its time."""
    s, p = replay.schedule, replay.problem
    producer = p.producer[s.tensor]
    for k in np.flatnonzero(s.source != s.placement[producer]):
        fail(f"{replay.item(p.n + k)} leaves from {replay.device(s.source[k])}")
    for k in np.flatnonzero(s.transfer_start < s.end[producer]):
        fail(f"{replay.item(p.n + k)} starts before {replay.op(producer[k])} ends")
    seconds = move_seconds(s, p)
    for k in np.flatnonzero(~close(s.transfer_end, s.transfer_start + seconds)):
        took = s.transfer_end[k] - s.transfer_start[k]
        fail(f"{replay.item(p.n + k)} takes {took}, not {seconds[k]}")


def _check_inputs(replay: Replay) -> None:
    """No op starts before its inputs are there."""
    s, p = replay.schedule, replay.problem
    # (m, d): the time from which a tensor is on a device, at home from its producer's end.
    arrival = np.repeat(s.end[p.producer][:, None], p.d, axis=1)
    arrival[s.tensor, s.target] = s.transfer_end
    tensor, device = replay.edges()
    there = arrival[tensor, device]
    for e in np.flatnonzero(s.start[p.consumers] < there):
        op = p.consumers[e]
        fail(
            f"{replay.op(op)} starts at {s.start[op]}, before its input "
            f"{replay.tensor(tensor[e])} arrives at {there[e]}"
        )


def _check_overlap(replay: Replay, noun: str, items: Indices, places: Indices) -> None:
    """A device or channel serves one item at a time."""
    # Sorted by device and time, two neighbours overlap if any items do.
    order = np.lexsort((replay.end[items], replay.start[items], places))
    items, places = items[order], places[order]
    clash = (places[1:] == places[:-1]) & (replay.start[items[1:]] < replay.end[items[:-1]])
    for i in np.flatnonzero(clash):
        cluster = replay.problem.cluster
        name = (cluster.names if noun == "device" else cluster.channels)[places[i]]
        fail(f"{replay.item(items[i])} and {replay.item(items[i + 1])} overlap on {noun} {name!r}")


def _check_sequence(replay: Replay) -> None:
    """The decoder's order is one of all items but signals, and agrees with their times."""
    s, p = replay.schedule, replay.problem
    moves = p.n + np.flatnonzero(~p.signal[s.tensor])
    if not np.array_equal(np.sort(s.sequence), np.concatenate((np.arange(p.n), moves))):
        fail("sequence does not hold every op and every transfer but signals once")
    if s.decoder != "calls":
        _check_dependence(replay)
        _check_turns(replay)


def _turns(replay: Replay) -> Indices:
    """(n + k,) places of ops and transfers in the decoder's order; -1 for signals."""
    turn = np.full(len(replay.start), -1)
    turn[replay.schedule.sequence] = np.arange(len(replay.schedule.sequence))
    return turn


def _check_dependence(replay: Replay) -> None:
    """Check that the decoder's order has every item after its dependencies."""
    s, p, turn = replay.schedule, replay.problem, _turns(replay)
    producer_turn = turn[p.producer]
    for k in np.flatnonzero(~p.signal[s.tensor] & (turn[p.n :] < producer_turn[s.tensor])):
        fail(f"sequence has {replay.item(p.n + k)} before {replay.op(p.producer[s.tensor[k]])}")
    # (m, d): the place from which a tensor is on a device; a signal is wherever it is read.
    there = np.repeat(producer_turn[:, None], p.d, axis=1)
    there[s.tensor, s.target] = np.maximum(there[s.tensor, s.target], turn[p.n :])
    tensor, device = replay.edges()
    for e in np.flatnonzero(turn[p.consumers] < there[tensor, device]):
        op = p.consumers[e]
        fail(f"sequence has {replay.op(op)} before its input {replay.tensor(tensor[e])} is there")


def _check_turns(replay: Replay) -> None:
    """Check that items start in the decoder's order; with blocking transfers, that those of one
    device do."""
    s, p, turn = replay.schedule, replay.problem, _turns(replay)
    if p.transfers == "blocking":
        items, places = device_items(s, p)
    else:
        # One lane for all items: they start in the decoder's order, on whatever device.
        items, places = s.sequence.astype(np.int64), np.zeros(len(s.sequence), np.int64)
    order = np.lexsort((turn[items], places))
    items, places = items[order], places[order]
    early = (places[1:] == places[:-1]) & (replay.start[items[1:]] < replay.start[items[:-1]])
    for i in np.flatnonzero(early):
        first, second = replay.item(items[i]), replay.item(items[i + 1])
        fail(f"sequence has {first} before {second}, which starts earlier")


def _check_service(replay: Replay) -> None:
    """Check that nothing waits without need: signals never wait, overlapped transfers only for a
    channel.

    The decoder chooses when a blocking transfer starts.
    """
    s, p = replay.schedule, replay.problem
    request = s.end[p.producer[s.tensor]]
    if p.transfers == "blocking":
        due = np.where(p.signal[s.tensor], request, np.inf)
    else:
        due = _first_come(replay, request)
    for k in np.flatnonzero(s.transfer_start > due):
        fail(f"{replay.item(p.n + k)} could start at {due[k]} but waits")


def _first_come(replay: Replay, request: Floats) -> Floats:
    """The earliest start of each transfer; checks that channels serve requests in order."""
    s, p = replay.schedule, replay.problem
    items, channel = channel_items(s, p)
    k = items - p.n
    # Sorted by channel in the order of service; ties go by request.
    order = np.lexsort((request[k], s.transfer_end[k], s.transfer_start[k], channel))
    k, channel = k[order], channel[order]
    same = channel[1:] == channel[:-1]
    first, second = k[:-1][same], k[1:][same]
    for i in np.flatnonzero(request[second] < request[first]):
        fail(
            f"{replay.item(p.n + second[i])} was requested before "
            f"{replay.item(p.n + first[i])}, which goes first on the same channel"
        )
    due = request.copy()
    due[second] = np.maximum(request[second], s.transfer_end[first])
    return due


def _check_makespan(replay: Replay) -> None:
    last = float(replay.end.max())
    if replay.schedule.makespan != last:
        fail(f"makespan is {replay.schedule.makespan}, but the last end is {last}")


def _check_peaks(replay: Replay) -> None:
    swept = peaks(replay.schedule, replay.problem)
    for d in np.flatnonzero(replay.schedule.peak != swept):
        fail(
            f"peak memory of {replay.device(d)} is {replay.schedule.peak[d]}, but its use "
            f"reaches {swept[d]}"
        )


def _check_capacity(replay: Replay) -> None:
    over = replay.schedule.peak - replay.problem.capacity
    for d in np.flatnonzero(over > 0):
        capacity = replay.problem.capacity[d]
        fail(f"device {replay.device(d)} needs {over[d]} bytes more than its {capacity}")
