"""`spotlight`: proximal policy optimisation of a sequence-to-sequence policy (Gao, Chen and Li,
*Spotlight: Optimizing Device Placement for Training Deep Neural Networks*, ICML 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from situate.grouping import group
from situate.policies.installed import check_torch
from situate.policies.shape import Shape
from situate.problem import Problem
from situate.solvers.failures import failure_seconds
from situate.solvers.learn import learn
from situate.solvers.learner import Learner, Learning
from situate.solvers.search import Search


@dataclass(frozen=True)
class SpotlightSettings:
    """The defaults are the paper's, and ours where it is silent; see docs/methods/spotlight.md.

    Attributes:
        shape: of the policy.
        K: trials between two updates.
        steps: of ascent in an update.
        ascent: rule of each step.
        learning_rate: of each step.
        clip: largest norm of a gradient.
        beta: first weight of the KL penalty.
        target: divergence that beta is adapted to; None to keep beta.
        normalise: take for a reward how many standard deviations the logarithm of a trial's
            seconds is below the mean of its batch.
        entropy: weight of the policy's entropy.
    """

    shape: Shape = Shape(hidden=64, layers=2)
    K: int = 1
    steps: int = 10
    ascent: Literal["plain", "adam"] = "plain"
    learning_rate: float = 1.0
    clip: float | None = None
    beta: float = 1.0
    target: float | None = None
    normalise: bool = False
    entropy: float = 0.0


PAPER = SpotlightSettings()
TUNED = SpotlightSettings(
    shape=Shape(hidden=64, layers=2, score="general", aligned=True),
    K=12,
    steps=4,
    ascent="adam",
    learning_rate=3e-3,
    clip=1.0,
    target=0.03,
    normalise=True,
    entropy=0.0,
)


def run(search: Search) -> None:
    """Learn until the budget ends."""
    learn(search, "spotlight", learner)


def learner(problem: Problem, learning: Learning, samples: int, seed: int) -> Learner:
    """The learner in one of its settings.

    Raises:
        MissingExtra: PyTorch is not installed.
    """
    return make(problem, learning, PAPER if learning.settings == "paper" else TUNED, seed)


def make(problem: Problem, learning: Learning, settings: SpotlightSettings, seed: int) -> Learner:
    """The learner in any settings."""
    check_torch()
    from situate.policies.ascent import Ascent
    from situate.policies.group_policy import GroupPolicy
    from situate.solvers.sequence_learner import SequenceLearner, generator
    from situate.solvers.spotlight_update import Proximal

    groups = group(problem, learning.grouping or "prefix", learning.groups)
    policy = GroupPolicy(problem, groups, settings.shape, generator(seed, 0))
    return SequenceLearner(
        groups,
        policy,
        Ascent(policy, settings.ascent, settings.learning_rate, settings.clip),
        Proximal(settings),
        placements=settings.K,
        failure=failure_seconds(problem),
        seed=seed,
    )
