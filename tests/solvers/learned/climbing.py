"""A learner as a user writes one, and ways for it to be wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.evaluators.measurements import Measurements
from situate.grouping import group
from situate.solvers.learned.learner import Learning, MakeLearner, State


class Climber:
    """Moves one unit of the best placement so far; `spoil` changes its placements."""

    batch: Any = 4

    def __init__(self, problem: Problem, seed: int, spoil: Callable[[Any], Any]) -> None:
        self.units = group(problem, "none")
        self.seed, self.spoil, self.samples, self.seconds = seed, spoil, 0, np.inf
        self.best = self.units.allowed.argmax(axis=1).astype(np.int32)

    def ask(self, k: int) -> NDArray[np.int32]:
        rng = np.random.default_rng([self.seed, self.samples])
        devices = np.tile(self.best, (k, 1))
        for row in devices:
            moved = rng.integers(len(self.units))
            row[moved] = rng.choice(np.flatnonzero(self.units.allowed[moved]))
        placements = self.units.expand(devices)
        return self.spoil(placements) if self.samples else placements  # type: ignore[no-any-return]

    def tell(self, placements: NDArray[np.int32], measurements: Measurements) -> None:
        self.samples += len(placements)
        seconds = measurements.times(np.inf)
        if seconds.min() < self.seconds:
            self.seconds = float(seconds.min())
            self.best = self.units.devices(placements)[seconds.argmin()]

    def state(self) -> State:
        return {"best": self.best, "numbers": np.array([self.samples, self.seconds])}

    def restore(self, state: State) -> None:
        self.best = state["best"].astype(np.int32)
        samples, self.seconds = map(float, state["numbers"])
        self.samples = int(samples)


def climbing(
    spoil: Callable[[Any], Any] = lambda placements: placements, **attributes: Any
) -> MakeLearner:
    """A method by the name of `climb`, whose learner has these attributes too."""

    def climb(problem: Problem, learning: Learning, samples: int, seed: int) -> Climber:
        climber = Climber(problem, seed, spoil)
        for name, value in attributes.items():
            setattr(climber, name, value)
        return climber

    return climb
