"""A whole model: placement, times, bytes and the objective, for CP-SAT to solve."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from situate.bounds.rounding import EPSILON
from situate.data.arrays import Ints
from situate.data.problem import Problem
from situate.solvers.exact.calls import Calls
from situate.solvers.exact.clock import Bytes, Clock, Ticking, Turns
from situate.solvers.exact.hints import hint_placement, hint_times
from situate.solvers.exact.lifetimes import Lifetimes, room_beside_persistent
from situate.solvers.exact.loads import loads
from situate.solvers.exact.placing import Placing
from situate.solvers.exact.timing import Timing
from situate.solvers.incumbent import Candidate
from situate.solvers.search import Search

Goal = Literal["time", "memory", "throughput", "load", "shortfall"]
"""An objective; `load`: the seconds of the busiest device or channel, a lower bound on the
makespan; or `shortfall`: the bytes by which devices overflow."""


@dataclass
class Model:
    """A model of a problem.

    Attributes:
        model: the `CpModel`.
        placing: the literals of the placement.
        start: (n,) variables of the ops' starts; empty if the model has no times.
        timing: of ops and transfers; None if the model has no times.
        objective: the integer expression to minimise.
        unit: seconds or bytes per unit of the objective.
        clock: None if only bytes count.
    """

    model: Any
    placing: Placing
    start: list[Any]
    timing: Timing | None
    objective: Any
    unit: float
    clock: Clock | None

    def forbid(self, device: Ints) -> None:
        """Exclude the placement of units on these devices (units,)."""
        here = [self.placing.on[unit, where] for unit, where in enumerate(device.tolist())]
        self.model.add_bool_or(~literal for literal in here)

    def limit(self, value: float) -> None:
        """Exclude solutions worse than a value of the objective, in seconds or bytes."""
        self.model.add(self.objective <= math.ceil(value / self.unit))


def build(cp: Any, search: Search, goal: Goal) -> Model:
    """The model of a search's problem, without solutions worse than the incumbent.

    Args:
        cp: the module `cp_model`.
        search: with an incumbent, which fits unless the goal is the shortfall.
        goal: to minimise.

    Raises:
        OutOfTime: the search's time is spent before the model is complete.
    """
    problem, incumbent = search.problem, search.incumbent
    placing = Placing(problem, cp.CpModel(), lambda: search.budget.remaining() <= 0)
    if goal == "time":
        model = _of_time(placing, incumbent, search.lower_bound)
    elif goal in ("throughput", "load"):
        model = _of_loads(placing, incumbent, goal, search.lower_bound)
    else:
        model = _of_bytes(placing, incumbent, goal, search.lower_bound)
    model.model.minimize(model.objective)
    hint_placement(placing, incumbent)
    if model.timing is not None and model.clock is not None:
        hint_times(placing, model.timing, model.clock, incumbent)
    return model


def _of_time(placing: Placing, incumbent: Candidate, bound: float) -> Model:
    problem = placing.problem
    sizes = Bytes.of(problem)
    clock = _ticking(placing, _end(problem, incumbent))
    if problem.transfers == "atomic":
        calls = Calls(placing, clock)
        room_beside_persistent(placing, sizes, _capacities(problem, sizes))
        return _with_bound(
            Model(placing.model, placing, [], None, calls.makespan, clock.unit, clock), bound
        )
    timing = Timing(placing, clock)
    if _live_bytes_count(problem):
        Lifetimes(placing, timing, sizes, _capacities(problem, sizes))
    else:
        room_beside_persistent(placing, sizes, _capacities(problem, sizes))
    model = Model(placing.model, placing, timing.start, timing, timing.makespan, clock.unit, clock)
    return _with_bound(model, bound)


def _end(problem: Problem, incumbent: Candidate) -> float:
    """Seconds by which every schedule of interest has ended."""
    if incumbent.feasible:
        return incumbent.value
    # Two calls may both pay for the same transfer.
    return 4 * problem.serial_seconds or 1.0


def _with_bound(model: Model, bound: float) -> Model:
    """The model with a lower bound on its objective."""
    model.model.add(model.objective >= math.floor(bound / model.unit * (1 - 2 * EPSILON)))
    return model


def _of_loads(placing: Placing, incumbent: Candidate, goal: Goal, bound: float) -> Model:
    problem = placing.problem
    sizes = Bytes.of(problem)
    clock = _ticking(placing, incumbent.value)
    period = placing.model.new_int_var(0, clock.horizon, "")
    for load in loads(placing, clock).values():
        placing.model.add(load <= period)
    model = Model(placing.model, placing, [], None, period, clock.unit, clock)
    if goal == "throughput" and _live_bytes_count(problem):
        turns = _turns(placing)
        timing = Timing(placing, turns)
        Lifetimes(placing, timing, sizes, _capacities(problem, sizes))
        model.clock, model.timing, model.start = turns, timing, timing.start
    else:
        room_beside_persistent(placing, sizes, _capacities(problem, sizes))
    return _with_bound(model, bound)


def _turns(placing: Placing) -> Turns:
    """The clock of a model in which only bytes count."""
    problem = placing.problem
    horizon = problem.n + len(placing.received)
    return Turns(EPSILON * problem.serial_seconds, horizon)


def _of_bytes(placing: Placing, incumbent: Candidate, goal: Goal, bound: float) -> Model:
    problem, model = placing.problem, placing.model
    sizes = Bytes.of(problem)
    limit, objective = _limits(placing, incumbent, goal, sizes)
    clock = _turns(placing)
    if goal == "memory":
        model.add(objective >= int(bound) // sizes.unit)
    if problem.rules.memory == "persistent":
        room_beside_persistent(placing, sizes, limit)
        return Model(model, placing, [], None, objective, sizes.unit, None)
    timing = Timing(placing, clock)
    Lifetimes(placing, timing, sizes, limit)
    return Model(model, placing, timing.start, timing, objective, sizes.unit, clock)


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
