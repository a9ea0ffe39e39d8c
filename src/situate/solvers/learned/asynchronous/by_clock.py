"""The controllers of a learner, for a virtual clock or the wall clock."""

from __future__ import annotations

from typing import cast

import numpy as np

from situate.data.problem import Problem
from situate.solvers.learned.asynchronous.controllers import Controller, Controllers
from situate.solvers.learned.asynchronous.virtual_clock import VirtualClock
from situate.solvers.learned.asynchronous.virtual_controllers import VirtualControllers
from situate.solvers.learned.asynchronous.wall_controllers import WallControllers
from situate.solvers.learned.learner import Learning, MakeLearner


def make_controllers(
    make: MakeLearner, problem: Problem, learning: Learning, samples: int, seed: int
) -> Controllers:
    """The controllers that `learning` asks for, each a learner from `make` with its own seed."""
    assert learning.controllers is not None
    seeds = np.random.SeedSequence(seed).generate_state(learning.controllers - 1)
    learners = [make(problem, learning, samples, one_seed) for one_seed in (seed, *map(int, seeds))]
    controllers = cast(list[Controller], learners)
    if learning.clock == "wall":
        return WallControllers(controllers, learning.stalest)
    clock = learning.clock or VirtualClock(workers=controllers[0].batch)
    return VirtualControllers(controllers, clock, learning.stalest)
