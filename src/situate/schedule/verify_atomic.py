"""Rejects a schedule that breaks the atomic rules: an accelerator runs its ops as one call.

Within its call an accelerator receives, computes and sends, in turn. A tensor between two
accelerators is listed twice: for the sender and for the receiver. A signal is part of no call: it
is listed once, from its producer's call to its consumers'.
"""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Floats
from situate.schedule.items import Indices
from situate.schedule.load import crossings, loads, move_seconds
from situate.schedule.messages import Replay, close, fail


def check_calls(replay: Replay) -> None:
    """Check durations, the contents of each call, and that calls and CPU ops wait for their
    inputs."""
    _check_seconds(replay)
    _check_rows(replay)
    call = _calls(replay)
    begin, finish = _spans(replay, call)
    _check_sequence(replay, call)
    load = loads(replay.problem, replay.schedule.placement)
    for d in np.flatnonzero(np.bincount(call[call >= 0], minlength=len(load))):
        if not close(finish[d], begin[d] + load[d]):
            fail(f"the call of {replay.device(d)} does not take its load, {load[d]}")
    _check_signals(replay, finish)
    _check_inputs(replay, begin, finish)


def _check_seconds(replay: Replay) -> None:
    s, p = replay.schedule, replay.problem
    of_ops = p.seconds[np.arange(p.n), s.placement]
    seconds = np.concatenate((of_ops, move_seconds(s, p)))
    for i in np.flatnonzero(~close(replay.end, replay.start + seconds)):
        fail(f"{replay.item(i)} takes {replay.end[i] - replay.start[i]}, not {seconds[i]}")


def _check_rows(replay: Replay) -> None:
    """Accelerators receive every tensor once, and send it once, to the slowest receiver; signals
    that take time go once to every device."""
    s, p = replay.schedule, replay.problem
    pays = p.accelerators
    tensor, source, target, is_longest = crossings(p, s.placement)
    rows = tensor * p.d + target
    # A transfer between two accelerators is in both lists, because each spends time on it.
    needed = np.concatenate(
        (rows[pays[target]], rows[is_longest & pays[source]], _signalled(replay))
    )
    pairs = s.tensor.astype(np.int64) * p.d + s.target
    for key in np.setxor1d(needed, pairs):
        fail(f"{replay.move(key)} is {'missing' if key in needed else 'not needed'}")
    if not np.array_equal(np.sort(needed), np.sort(pairs)):
        fail("a transfer is not listed once for each accelerator that takes part in it")
    for k in np.flatnonzero(s.source != s.placement[p.producer[s.tensor]]):
        fail(f"{replay.item(p.n + k)} leaves from {replay.device(s.source[k])}")


def _signalled(replay: Replay) -> Indices:
    """Signals to other devices, as tensor times d plus target, if signals take time."""
    s, p = replay.schedule, replay.problem
    tensor, target = replay.edges()
    crosses = p.signal[tensor] & (target != s.placement[p.producer[tensor]])
    none = p.cluster.synchronisation == 0
    # Signals that take no time are not listed.
    return np.unique(tensor[crosses] * p.d + target[crosses])[: 0 if none else None]


def _calls(replay: Replay) -> Indices:
    """The accelerator in whose call each item runs; -1 for ops on a CPU, and for signals.

    Of the two rows of a transfer, the earlier is the sender's. At equal times the choice does not
    matter.
    """
    s, p = replay.schedule, replay.problem
    pays = p.accelerators
    # Rows (k,) with the same tensor and target are neighbours, the earlier first.
    order = np.lexsort((s.transfer_end, s.transfer_start, s.target, s.tensor))
    again = s.tensor[order][1:] == s.tensor[order][:-1]
    again &= s.target[order][1:] == s.target[order][:-1]
    senders = np.append(again, False)[: len(order)] | ~pays[s.target[order]]
    rows = np.empty(len(order), np.int64)
    rows[order] = np.where(senders, s.source[order], s.target[order])
    rows[p.signal[s.tensor]] = -1
    return np.concatenate((np.where(pays[s.placement], s.placement, -1), rows))


def _spans(replay: Replay, call: Indices) -> tuple[Floats, Floats]:
    """Begin and finish of every call (d,); infinite without a call."""
    d, inside = replay.problem.d, call >= 0
    begin, finish = np.full(d, np.inf), np.full(d, -np.inf)
    np.minimum.at(begin, call[inside], replay.start[inside])
    np.maximum.at(finish, call[inside], replay.end[inside])
    return begin, finish


def _check_sequence(replay: Replay, call: Indices) -> None:
    """A call receives first and sends last, one thing at a time."""
    s, n = replay.schedule, replay.problem.n
    # (n + k,) 0 where a call receives, 1 where it computes, 2 where it sends.
    phase = np.ones(len(call), np.int64)
    phase[n:] = np.where(call[n:] == s.source, 2, 0)
    order = np.lexsort((replay.end, replay.start, phase, call))
    order = order[call[order] >= 0]
    same = call[order][1:] == call[order][:-1]
    for i in np.flatnonzero(same & (replay.start[order][1:] < replay.end[order][:-1])):
        one, other = order[i], order[i + 1]
        fail(f"{replay.item(one)} and {replay.item(other)} are out of turn in their call")


def _check_signals(replay: Replay, finish: Floats) -> None:
    """They leave when their producer's call has ended, or on a CPU their producer."""
    s, p = replay.schedule, replay.problem
    producer = p.producer[s.tensor]
    signal_time = np.where(p.accelerators[s.source], finish[s.source], s.end[producer])
    for k in np.flatnonzero(p.signal[s.tensor] & (s.transfer_start != signal_time)):
        fail(f"{replay.item(p.n + k)} leaves at {s.transfer_start[k]}, not at {signal_time[k]}")


def _check_inputs(replay: Replay, begin: Floats, finish: Floats) -> None:
    """A call, and an op on a CPU, waits for the ends of other calls and of ops on CPUs, and for
    signals to arrive."""
    s, p = replay.schedule, replay.problem
    pays = p.accelerators
    tensor, device = replay.edges()
    producer, op = p.producer[tensor], p.consumers
    source = s.placement[producer]
    # An op reads a result of its own call at once, and that of another call when the call is over.
    within = (source == device) & pays[device]
    ready = np.where(pays[source] & ~within, finish[source], s.end[producer])
    ready += np.where(p.signal[tensor] & (source != device), p.cluster.synchronisation, 0.0)
    start = np.where(pays[device] & ~within, begin[device], s.start[op])
    for e in np.flatnonzero(start < ready):
        fail(f"{replay.op(op[e])} or its call starts before {replay.op(producer[e])} is over")
