"""Schedules and step times of decisions: the one place that chooses between the decoders."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from situate.data.placements import check_devices, check_order, integers
from situate.data.problem import Problem
from situate.data.topology import places
from situate.errors import SituateError, nearest
from situate.schedule.items import item_order
from situate.schedule.schedule import Schedule
from situate.simulation.atomic import schedule_calls
from situate.simulation.simulator import Simulator
from situate.simulation.transfer_order import TransferOrder, by_sequence
from situate.validation import Where

DecoderName = Literal["eager", "serial", "calls"]


def decoders_for(problem: Problem, objective: str) -> tuple[DecoderName, ...]:
    """The decoders that may make a schedule for an objective. Under atomic rules only calls time a
    step; the simulator serves all other cases."""
    if problem.transfers == "atomic" and objective == "time":
        return ("calls",)
    return ("eager", "serial")


def decode(
    problem: Problem,
    placement: NDArray[np.int32],
    order: NDArray[np.int32],
    decoder: DecoderName,
) -> Schedule:
    """The schedule of a placement (n,) and an order (n,), the most urgent op first.

    `calls`, the decoder of atomic rules, ignores the order.

    Raises:
        SituateError: arrays of another shape or type, an unknown device or decoder, or an order
            without every op exactly once.
    """
    if decoder not in get_args(DecoderName):
        raise SituateError(
            f"unknown decoder {decoder!r}{nearest(str(decoder), get_args(DecoderName))}"
        )
    devices = integers(placement, (problem.n,), "placement")
    placement = check_devices(problem, devices[None], lambda _: "placement: ")[0]
    return scheduled(Simulator(problem), placement, check_order(problem, order), decoder)


def scheduled(
    simulator: Simulator,
    placement: NDArray[np.int32],
    order: NDArray[np.int32],
    decoder: DecoderName,
    transfers: TransferOrder | None = None,
) -> Schedule:
    """The schedule of a decision that has been checked already; otherwise as `decode`.

    Args:
        transfers: of the placement; None gives each the urgency of its most urgent consumer.

    Raises:
        ValueError: a placement of another shape or on an unknown device; see `naming`.
    """
    if decoder == "calls":
        return schedule_calls(simulator.problem, placement, simulator.core)
    if transfers is None:
        return simulator.schedule(placement, priority_of(order), decoder=decoder)
    of_ops, of_transfers = transfers.priorities(simulator.problem, order)
    return simulator.schedule(placement, of_ops, of_transfers, decoder=decoder)


def rescheduled(
    problem: Problem, schedule: Schedule, placement: NDArray[np.int32] | None = None
) -> Schedule:
    """The schedule of a problem in the order of another schedule's ops and transfers, by that
    schedule's decoder.

    Args:
        problem: of the schedule's graph and devices; durations may differ.
        schedule: of the same rules.
        placement: (n,) devices of ops; None for those of the schedule.
    """
    devices = schedule.placement if placement is None else placement
    simulator = Simulator(problem)
    if schedule.decoder == "calls":
        return scheduled(simulator, devices, np.array(problem.graph.order, np.int32), "calls")
    order, transfers = by_sequence(problem, schedule, devices)
    decoder: DecoderName = "serial" if schedule.decoder == "serial" else "eager"
    return scheduled(simulator, devices, order, decoder, transfers)


def step_times(
    simulator: Simulator,
    placements: NDArray[np.int32],
    priority: NDArray[np.float32],
    threads: int | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Makespans (k,) and peaks (k, d) of placements (k, n) by the first decoder for time.

    Args:
        priority: (n,) of the ops, the same under every placement.

    Raises:
        ValueError: as `scheduled`.
    """
    if "calls" in decoders_for(simulator.problem, "time"):
        devices = simulator.as_devices(placements)
        schedules = [schedule_calls(simulator.problem, row, simulator.core) for row in devices]
        return np.array([s.makespan for s in schedules]), np.array([s.peak for s in schedules])
    # (n,) -> (k, n): one row, seen k times without a copy.
    return simulator.evaluate(
        placements, np.broadcast_to(priority, (len(placements), len(priority))), threads=threads
    )


@contextlib.contextmanager
def naming(problem: Problem, placements: NDArray[Any], where: Where) -> Iterator[None]:
    """A block whose errors name the row and the op of placements (k, n) on an unknown device.
    The core's own errors name neither. Valid placements are checked by the core alone.

    Raises:
        SituateError: in place of the core's error.
    """
    try:
        yield
    except ValueError:
        check_devices(problem, placements, where)
        raise


def priority_of(order: NDArray[np.int32]) -> NDArray[np.float32]:
    """Priorities (n,) that rank ops as `order` does: the first op's is n, the last one's 1."""
    n = len(order)
    # The core takes 32-bit floats, which are exact for integers up to 2^24.
    priority = np.empty(n, np.float32)
    priority[order] = np.arange(n, 0, -1, dtype=np.float32)
    return priority


def order_of(problem: Problem, schedule: Schedule) -> NDArray[np.int32]:
    """Ops by start time, producers before consumers: a topological order.

    Under calls, which may wait for one another, it is the graph's order. Ops that start at one
    instant keep the graph's order, or the schedule's if memory is counted per step.
    """
    if schedule.decoder == "calls":
        return np.array(problem.graph.order, np.int32)
    if problem.rules.memory == "step":
        items = item_order(schedule, problem)
        return items[items < problem.n].astype(np.int32)
    return rising(problem, schedule.start)


def is_topological(problem: Problem, order: NDArray[np.int32]) -> bool:
    """True if every op of an order (n,) follows the producers of its inputs."""
    place = places(order)
    readers = np.diff(problem.consumer_start)
    producers = np.repeat(problem.producer, readers)  # (edges,)
    return bool(np.all(place[producers] < place[problem.consumers]))


def rising(problem: Problem, key: NDArray[np.float64]) -> NDArray[np.int32]:
    """Ops in rising order of a key (n,); equal keys keep the graph's order."""
    return np.lexsort((places(problem.graph.order), key)).astype(np.int32)
