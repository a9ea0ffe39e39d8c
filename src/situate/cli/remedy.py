"""What helps a plan that a pipeline cannot be made of, after it was tried."""

from __future__ import annotations

import warnings

from situate.errors import SituateError
from situate.problem import Problem
from situate.report.tables import over_text
from situate.schedule import Schedule

METHODS = ("pipeline", "expert")
"""Those that place whole runs of layers, the second for networks of the zoo."""

SECONDS = 5.0
"""Time limit of each."""


def remedy(problem: Problem) -> str:
    """The method whose plan becomes a pipeline that fits, else by how much the best does not."""
    best: Schedule | None = None
    for method in METHODS:
        found = _pipeline(problem, method)
        if found is not None and found.feasible(problem):
            return f"plan it with --method {method}"
        if found is not None and (best is None or found.excess(problem) < best.excess(problem)):
            best = found
    if best is None:
        return "no plan of whole runs of layers was found for this cluster"
    over = over_text(problem, best).removeprefix("no: ")
    return (
        f"the best pipeline that was found does not fit either ({over}): plan on a larger cluster"
    )


def _pipeline(problem: Problem, method: str) -> Schedule | None:
    """What a method's plan comes to as a pipeline; None where it gives none."""
    from situate.solvers import solve
    from situate.writers.layers import layers
    from situate.writers.stages import stage_schedule, stages

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            plan = solve(problem, method, time_limit=SECONDS).schedule
            stages(problem, plan)
            return stage_schedule(problem, plan, layers(problem, plan))
        except SituateError:
            return None
