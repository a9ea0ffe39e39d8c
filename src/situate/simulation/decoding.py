"""From decisions to schedules: a placement and an order of ops, by a named decoder."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from situate.data.placements import check_devices, check_order, integers
from situate.data.problem import Problem
from situate.data.topology import places
from situate.errors import SituateError, nearest
from situate.schedule.schedule import Schedule

DecoderName = Literal["eager", "serial", "calls"]


def decode(
    problem: Problem,
    placement: NDArray[np.int32],
    order: NDArray[np.int32],
    decoder: DecoderName,
) -> Schedule:
    """The one schedule that a placement (n,) and an order (n,), most urgent first, stand for.

    `calls` is the decoder of the atomic rules, where the order plays no part.

    Raises:
        SituateError: arrays of another shape or not of integers, a device that there is not, an
            order in which not every op is once, an unknown decoder.
    """
    if decoder not in get_args(DecoderName):
        raise SituateError(
            f"unknown decoder {decoder!r}{nearest(str(decoder), get_args(DecoderName))}"
        )
    given = integers(placement, (problem.n,), "placement")
    placement = check_devices(problem, given[None], lambda _: "placement: ")[0]
    order = check_order(problem, order)
    if decoder == "calls":
        from situate.simulation.atomic import schedule_calls

        return schedule_calls(problem, placement)
    from situate.simulation.simulator import Simulator

    return Simulator(problem).schedule(placement, priority_of(order), decoder=decoder)


def priority_of(order: NDArray[np.int32]) -> NDArray[np.float32]:
    """Priorities (n,) that rank ops as `order` does: the first op's is n, the last one's 1."""
    n = len(order)
    priority = np.empty(n, np.float32)
    priority[order] = np.arange(n, 0, -1, dtype=np.float32)
    return priority


def order_of(problem: Problem, schedule: Schedule) -> NDArray[np.int32]:
    """Ops by start time, producers before consumers: a topological order.

    That of the graph where calls decide, which may wait for one another.
    """
    if schedule.decoder == "calls":
        return np.array(problem.graph.order, np.int32)
    return rising(problem, schedule.start)


def rising(problem: Problem, key: NDArray[np.float64]) -> NDArray[np.int32]:
    """Ops, the one with the least key (n,) first; where keys are equal, in the graph's order."""
    return np.lexsort((places(problem.graph.order), key)).astype(np.int32)
