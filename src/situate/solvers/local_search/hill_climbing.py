"""`hill_climbing`: moves blocks of groups, large and small, and keeps what is no slower."""

from __future__ import annotations

from situate.data.problem import Problem
from situate.solvers.learned.grouped import grouped
from situate.solvers.learned.initial_placements import beginnings
from situate.solvers.learned.learner import Learning
from situate.solvers.learned.levels import scales
from situate.solvers.local_search.climber import GROUPS, HillClimber


def learner(problem: Problem, learning: Learning, samples: int, seed: int) -> HillClimber:
    """See `Learner` and docs/methods/hill_climbing.md."""
    groups = grouped(problem, learning, "heavy-edge", GROUPS)
    first = beginnings(problem, learning, groups)
    return HillClimber(groups, scales(problem, groups), first, seed)
