"""A placement of a case, by a method or by hand, and the figures of its schedule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.lib.record import Row
from research.papers.cases import Case
from research.papers.placements import by_hand, shares
from research.papers.runs import LEARNING, Run
from situate.data.arrays import Placement
from situate.data.problem import Problem
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import decode
from situate.solvers.heuristics.baselines import expert_placement

BY_HAND = {
    "expert": expert_placement,
    "encoder apart": by_hand.encoder_apart,
    "synchronous tower": by_hand.tower,
}
"""Placements that nothing searches for."""


@dataclass(frozen=True)
class Wanted:
    """A placement to be made.

    Attributes:
        settings: of a method that learns, else empty.
        samples: that a method may measure.
    """

    case: Case
    method: str
    settings: str = ""
    seed: int = 0
    samples: int = 0

    @property
    def name(self) -> str:
        """Such as `post, paper`."""
        return f"{self.method}, {self.settings}" if self.settings else self.method


@dataclass(frozen=True)
class Placed:
    """A placement (n,), with rows of its figures; see `shares`."""

    wanted: Wanted
    placement: Placement
    summary: Row
    load: list[Row]
    copies: list[Row]
    modules: list[Row]


def place(wanted: Wanted) -> Placed:
    """Make it, on one thread."""
    problem, schedule = _schedule(wanted)
    return Placed(
        wanted,
        schedule.placement,
        shares.summary(problem, schedule),
        list(shares.load(problem, schedule)),
        list(shares.copies(problem, schedule)),
        list(shares.modules(problem, schedule)),
    )


def _schedule(wanted: Wanted) -> tuple[Problem, Schedule]:
    """The plan of `auto` as it is; placements in the order of the learners' machine."""
    case = wanted.case
    if wanted.method in BY_HAND:
        sliced = wanted.method == "synchronous tower"
        problem = by_hand.in_slices(case) if sliced else case.problem()
        placement = BY_HAND[wanted.method](problem)
        return problem, decode(problem, placement, np.array(problem.graph.order), "eager")
    settings = wanted.settings or next(iter(LEARNING))
    result = Run(case, wanted.method, settings, wanted.seed, wanted.samples).result()
    return result.problem, result.schedule
