"""A whole model for CP-SAT: variables, constraints, objective, and the incumbent as a hint."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from situate.data.arrays import Ints
from situate.data.topology import unit_devices
from situate.solvers.exact.clock import Clock
from situate.solvers.exact.constraints import Timing
from situate.solvers.exact.objective import Goal, Objective, objective_of
from situate.solvers.exact.variables import Placing
from situate.solvers.incumbent import Candidate
from situate.solvers.search import Search


@dataclass(frozen=True)
class Model:
    """A model of a problem.

    Attributes:
        model: the `CpModel`.
        placing: the literals of the placement.
        objective: the quantity to minimise, with the times of the model.
    """

    model: Any
    placing: Placing
    objective: Objective

    @property
    def start(self) -> list[Any]:
        """(n,) variables of the ops' starts; empty if the model has no times."""
        return self.objective.timing.start if self.objective.timing else []

    @property
    def sent(self) -> dict[tuple[int, int], Any]:
        """Variables of the transfers' starts by (tensor, target); empty without times."""
        return self.objective.timing.sent if self.objective.timing else {}

    @property
    def unit(self) -> float:
        """Seconds or bytes per unit of the objective."""
        return self.objective.unit

    def forbid(self, device: Ints) -> None:
        """Exclude the placement of units on these devices (units,)."""
        # At least one unit must run elsewhere.
        here = [self.placing.on[unit, where] for unit, where in enumerate(device.tolist())]
        self.model.add_bool_or(~literal for literal in here)

    def limit(self, value: float) -> None:
        """Exclude solutions worse than a value of the objective, in seconds or bytes."""
        # Rounded up, so that no plan of this value is excluded.
        self.model.add(self.objective.expression <= math.ceil(value / self.unit))


def build(cp: Any, search: Search, goal: Goal) -> Model:
    """The model of a search's problem, without solutions worse than the incumbent.

    Args:
        cp: the module `cp_model`.
        search: with an incumbent, which fits unless the goal is the shortfall.
        goal: to minimise.

    Raises:
        OutOfTime: the search's time is spent before the model is complete.
    """
    incumbent = search.incumbent
    placing = Placing(search.problem, cp.CpModel(), lambda: search.budget.remaining() <= 0)
    objective = objective_of(placing, incumbent, goal, search.lower_bound)
    placing.model.minimize(objective.expression)
    hint_placement(placing, incumbent)
    if objective.timing is not None and objective.clock is not None:
        hint_times(placing, objective.timing, objective.clock, incumbent)
    return Model(placing.model, placing, objective)


def hint_placement(placing: Placing, incumbent: Candidate) -> None:
    """Hint the devices of units and the transfers that follow from them."""
    problem, model = placing.problem, placing.model
    device_of = unit_devices(problem, incumbent.placement).tolist()
    for (unit, device), here in placing.on.items():
        model.add_hint(here, device_of[unit] == device)
    sent = {arrival: _sent(placing, incumbent, *arrival) for arrival in placing.received}
    for arrival, received in placing.received.items():
        model.add_hint(received, sent[arrival])
    for move, literal in zip(placing.moves, placing.occurs, strict=True):
        at_home = device_of[placing.home(move.tensor)] == move.source
        model.add_hint(literal, at_home and sent[move.arrival])


def _sent(placing: Placing, incumbent: Candidate, tensor: int, target: int) -> bool:
    """True if the plan sends a tensor to a device."""
    if incumbent.placement[placing.problem.producer[tensor]] == target:
        return False
    return any(incumbent.placement[op] == target for op in placing.readers(tensor, target))


def hint_times(placing: Placing, timing: Timing, clock: Clock, incumbent: Candidate) -> None:
    """Hint the starts of ops and transfers."""
    schedule, model = incumbent.schedule, placing.model
    # Signals start at instants that the model does not have.
    moves = np.flatnonzero(~placing.problem.signal[schedule.tensor])
    ticks = clock.at(np.concatenate((schedule.start, schedule.transfer_start[moves]))).tolist()
    arrivals = zip(schedule.tensor[moves].tolist(), schedule.target[moves].tolist(), strict=True)
    starts = [*timing.start, *(timing.sent[arrival] for arrival in arrivals)]
    for start, tick in zip(starts, ticks, strict=True):
        model.add_hint(start, tick)
