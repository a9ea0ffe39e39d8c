"""The slow, obvious simulator of docs/execution-model.md, written from that page alone.

Floating point operations are those of the page, in its order, so that another implementation can
agree to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from situate.data.problem import Problem
from situate.schedule.schedule import Schedule
from tests.oracle.case import Case, Move
from tests.oracle.events import Events
from tests.oracle.memory import peaks
from tests.oracle.serial import blocking_times, op_order
from tests.oracle.times import Times


def simulate(
    problem: Problem,
    placement: ArrayLike,
    priority: ArrayLike,
    transfer_priority: ArrayLike | None = None,
    decoder: Literal["eager", "serial"] = "eager",
) -> Schedule:
    """The schedule of a placement (n,), priorities (n,) and transfer priorities (m, d).

    Transfers, and signals that take time, are listed by tensor, then target. Atomic rules are not
    simulated.
    """
    case = Case(problem, placement, priority, transfer_priority)
    return _schedule(case, _decode(case, decoder), decoder)


def _decode(case: Case, decoder: str) -> Times:
    assert case.problem.transfers != "atomic"
    if decoder == "eager":
        return Events(case).run()
    assert decoder == "serial"
    if case.problem.transfers == "blocking":
        return blocking_times(case)
    return Events(case, op_order(case)).run()


def _schedule(case: Case, times: Times, decoder: str) -> Schedule:
    lines = sorted([*_transfers(case, times), *_signals(case, times)])
    tensor, source, target, begin, end = zip(*lines, strict=True) if lines else [()] * 5
    return Schedule(
        placement=np.array(case.device, np.int32),
        start=np.array([times.op_start[j] for j in case.ops]),
        end=np.array([times.op_end[j] for j in case.ops]),
        tensor=np.array(tensor, np.int32),
        source=np.array(source, np.int32),
        target=np.array(target, np.int32),
        transfer_start=np.array(begin, np.float64),
        transfer_end=np.array(end, np.float64),
        sequence=np.array(_sequence(case, times, lines), np.int32),
        makespan=times.makespan,
        peak=np.array(peaks(case, times), np.int64),
        decoder=decoder,
    )


def _transfers(case: Case, times: Times) -> Iterator[tuple[int, int, int, float, float]]:
    for m in case.moves:
        yield m.tensor, m.source, m.target, times.move_start[m.key], times.move_end[m.key]


def _sequence(
    case: Case, times: Times, lines: list[tuple[int, int, int, float, float]]
) -> list[int]:
    """The items by number: ops, then the lines of transfers."""
    number = {(line[0], line[2]): len(case.ops) + k for k, line in enumerate(lines)}
    return [number[item.key] if isinstance(item, Move) else item for item in times.sequence]


def _signals(case: Case, times: Times) -> Iterator[tuple[int, int, int, float, float]]:
    """Signals that take time are listed too."""
    for t in case.tensors:
        if case.is_signal(t) and case.problem.cluster.synchronisation > 0:
            for target in case.targets(t):
                produced = times.op_end[case.producer[t]]
                yield t, case.home(t), target, produced, times.arrival(t, target)
