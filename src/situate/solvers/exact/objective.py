"""Objectives of a model: time, load, throughput, memory, or the shortfall of memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from situate.bounds.rounding import EPSILON
from situate.data.problem import Problem
from situate.solvers.exact.clock import Bytes, Clock, Ticking, Turns
from situate.solvers.exact.constraints import Calls, Timing, loads
from situate.solvers.exact.lifetimes import Lifetimes, room_beside_persistent
from situate.solvers.exact.variables import Placing
from situate.solvers.incumbent import Candidate

Goal = Literal["time", "memory", "throughput", "load", "shortfall"]
"""An objective; `load`: the seconds of the busiest device or channel, a lower bound on the
makespan; or `shortfall`: the bytes by which devices overflow."""


@dataclass(frozen=True)
class Objective:
    """A quantity to minimise.

    Attributes:
        expression: the quantity, an integer expression.
        unit: seconds or bytes per unit of it.
        timing: of ops and transfers; None if the model has no times.
        clock: of `timing`; None if only bytes count.
    """

    expression: Any
    unit: float
    timing: Timing | None = None
    clock: Clock | None = None


def objective_of(placing: Placing, incumbent: Candidate, goal: Goal, bound: float) -> Objective:
    """The objective of a model, with the constraints on times and bytes that it needs.

    Args:
        placing: the variables of the placement.
        incumbent: solutions worse than it are left out.
        goal: to minimise.
        bound: lower bound on the goal, in seconds or bytes.

    Raises:
        OutOfTime: the time to build the model is spent.
    """
    if goal == "time":
        return _time(placing, incumbent, bound)
    if goal in ("throughput", "load"):
        return _period(placing, incumbent, goal, bound)
    return _bytes(placing, incumbent, goal, bound)


def _time(placing: Placing, incumbent: Candidate, bound: float) -> Objective:
    problem = placing.problem
    sizes = Bytes.of(problem)
    capacities = _capacities(problem, sizes)
    clock = _ticking(placing, _end(problem, incumbent))
    if problem.transfers == "atomic":
        calls = Calls(placing, clock)
        room_beside_persistent(placing, sizes, capacities)
        return _at_least(placing, Objective(calls.makespan, clock.unit, None, clock), bound)
    timing = Timing(placing, clock)
    if _live_bytes_count(problem):
        Lifetimes(placing, timing, sizes, capacities)
    else:
        room_beside_persistent(placing, sizes, capacities)
    return _at_least(placing, Objective(timing.makespan, clock.unit, timing, clock), bound)


def _end(problem: Problem, incumbent: Candidate) -> float:
    """Seconds by which every schedule of interest has ended."""
    if incumbent.feasible:
        return incumbent.value
    # Two calls may both pay for the same transfer.
    return 4 * problem.serial_seconds or 1.0


def _at_least(placing: Placing, objective: Objective, bound: float) -> Objective:
    """The objective, limited from below by a bound in seconds."""
    # The quotient may have been rounded up.
    least = math.floor(bound / objective.unit * (1 - 2 * EPSILON))
    placing.model.add(objective.expression >= least)
    return objective


def _period(placing: Placing, incumbent: Candidate, goal: Goal, bound: float) -> Objective:
    """The seconds of the busiest device or channel."""
    problem = placing.problem
    sizes = Bytes.of(problem)
    capacities = _capacities(problem, sizes)
    clock = _ticking(placing, incumbent.value)
    period = placing.model.new_int_var(0, clock.horizon, "")
    for load in loads(placing, clock).values():
        placing.model.add(load <= period)
    objective = Objective(period, clock.unit, None, clock)
    if goal == "throughput" and _live_bytes_count(problem):
        # Live bytes depend on the order of ops, but the period does not depend on their times.
        turns = _turns(placing)
        timing = Timing(placing, turns)
        Lifetimes(placing, timing, sizes, capacities)
        objective = Objective(period, clock.unit, timing, turns)
    else:
        room_beside_persistent(placing, sizes, capacities)
    return _at_least(placing, objective, bound)


def _turns(placing: Placing) -> Turns:
    """The clock of a model in which only bytes count."""
    problem = placing.problem
    # At most one turn for each op and each transfer.
    horizon = problem.n + len(placing.received)
    return Turns(EPSILON * problem.serial_seconds, horizon)


def _bytes(placing: Placing, incumbent: Candidate, goal: Goal, bound: float) -> Objective:
    """The largest peak of a device, or the bytes beyond capacities."""
    problem, model = placing.problem, placing.model
    sizes = Bytes.of(problem)
    limit, most = _limits(placing, incumbent, goal, sizes)
    clock = _turns(placing)
    if goal == "memory":
        model.add(most >= int(bound) // sizes.unit)
    if problem.rules.memory == "persistent":
        room_beside_persistent(placing, sizes, limit)
        return Objective(most, sizes.unit)
    timing = Timing(placing, clock)
    Lifetimes(placing, timing, sizes, limit)
    return Objective(most, sizes.unit, timing, clock)


def _limits(
    placing: Placing, incumbent: Candidate, goal: Goal, sizes: Bytes
) -> tuple[dict[int, Any], Any]:
    """Limits on the bytes of each device, and the objective: the largest limit, or the sum of the
    bytes beyond capacities."""
    problem, model = placing.problem, placing.model
    # Rounding may make a shortfall larger by one a device.
    by_memory = goal == "memory"
    largest = sizes.whole(
        int(incumbent.value) if by_memory else incumbent.excess + problem.d * sizes.unit
    )
    objective = model.new_int_var(0, largest, "")
    if by_memory:
        return {
            device: _smaller(model, objective, min(sizes.total, sizes.whole(int(capacity))))
            for device, capacity in enumerate(problem.capacity)
        }, objective
    limit, beyond = {}, []
    for device, capacity in _capacities(problem, sizes).items():
        beyond.append(model.new_int_var(0, largest, ""))
        limit[device] = capacity + beyond[-1]
    model.add(sum(beyond) <= objective)
    return limit, objective


def _smaller(model: Any, objective: Any, capacity: int) -> Any:
    """A variable that is at most the objective and the capacity."""
    most = model.new_int_var(0, capacity, "")
    model.add(most <= objective)
    return most


def _capacities(problem: Problem, sizes: Bytes) -> dict[int, int]:
    """Capacities of the devices that cannot hold everything at once."""
    whole = {d: sizes.whole(int(capacity)) for d, capacity in enumerate(problem.capacity)}
    return {d: capacity for d, capacity in whole.items() if capacity < sizes.total}


def _live_bytes_count(problem: Problem) -> bool:
    """True if live tensors beside persistent bytes may exceed a device's memory."""
    return problem.rules.memory != "persistent" and bool(_capacities(problem, Bytes.of(problem)))


def _ticking(placing: Placing, end: float) -> Ticking:
    """The clock of schedules that end by `end`."""
    problem = placing.problem
    others = [move.seconds for move in placing.moves] + [problem.cluster.synchronisation]
    return Ticking.until(end, np.concatenate((problem.seconds.ravel(), np.array(others))))
