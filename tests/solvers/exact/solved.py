"""Parts of models, solved."""

from __future__ import annotations

from typing import Any

from situate.data.problem import Problem
from situate.solvers.exact.solve import cp_model
from situate.solvers.exact.variables import Placing


def placed(problem: Problem, *devices: int) -> Placing:
    """A model in which units are on these devices."""
    placing = Placing(problem, cp_model().CpModel())
    for unit, device in enumerate(devices):
        placing.model.add(placing.on[unit, device] == 1)
    return placing


def least(placing: Placing, objective: Any, *also: Any) -> list[int]:
    """The least value of an objective, and those of other expressions there."""
    solver = cp_model().CpSolver()
    solver.parameters.num_workers = 1
    placing.model.minimize(objective)
    assert solver.status_name(solver.solve(placing.model)) == "OPTIMAL"
    return [int(solver.value(each)) for each in (objective, *also)]
