"""`spotlight`: proximal policy optimisation of a sequence-to-sequence policy (Y. Gao, L. Chen, B.
Li, *Spotlight: Optimizing Device Placement for Training Deep Neural Networks*, ICML 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from situate.data.problem import Problem
from situate.policies.installed import check_torch
from situate.policies.shape import Shape
from situate.solvers.learned.learner import Learner, Learning

PAPER_SHAPE = Shape(hidden=64, layers=2, width=16)


@dataclass(frozen=True)
class SpotlightSettings:
    """The defaults are the paper's, and ours where it is silent; see docs/methods/spotlight.md.

    Attributes:
        shape: of the policy.
        grouping, groups: what is placed as one, as `situate.grouping.group` takes them.
        K: trials between two updates.
        steps: of ascent in an update.
        ascent: rule of each step.
        learning_rate: of each step.
        clip: largest norm of a gradient; None for no limit.
        beta: weight of the KL penalty.
        normalise: take for a reward how many standard deviations the logarithm of a trial's
            seconds is below the mean of its batch.
    """

    shape: Shape = PAPER_SHAPE
    grouping: str = "prefix"
    groups: int | None = None
    K: int = 1
    steps: int = 10
    ascent: Literal["plain", "adam"] = "plain"
    learning_rate: float = 0.1
    clip: float | None = None
    beta: float = 1.0
    normalise: bool = False


PAPER = SpotlightSettings()
TUNED = SpotlightSettings(
    shape=Shape(hidden=48, layers=2, score="general", aligned=True),
    grouping="heavy-edge",
    groups=96,
    K=12,
    steps=4,
    ascent="adam",
    learning_rate=1e-2,
    clip=1.0,
    normalise=True,
)


def learner(problem: Problem, learning: Learning, samples: int, seed: int) -> Learner:
    """The learner in one of its settings.

    Raises:
        MissingExtra: PyTorch is not installed.
    """
    return make(problem, learning, PAPER if learning.settings == "paper" else TUNED, seed)


def make(problem: Problem, learning: Learning, settings: SpotlightSettings, seed: int) -> Learner:
    """The learner in any settings; a grouping asked for goes before theirs."""
    check_torch()
    from situate.solvers.learned.spotlight.update import spotlight_learner

    return spotlight_learner(problem, learning, settings, seed)
