"""`colocrl`: policy gradient of a sequence-to-sequence policy over colocation groups (Mirhoseini et
al., *Device Placement Optimization with Reinforcement Learning*, ICML 2017)."""

from __future__ import annotations

from dataclasses import dataclass

from situate.grouping import group
from situate.policies.installed import check_torch
from situate.policies.shape import Shape
from situate.problem import Problem
from situate.solvers.failures import failure_seconds
from situate.solvers.learn import learn
from situate.solvers.learner import Learner, Learning
from situate.solvers.search import Search


@dataclass(frozen=True)
class ColocSettings:
    """The defaults are the paper's, and ours where it is silent; see docs/methods/colocrl.md.

    Attributes:
        shape: of the policy.
        K: placements between two updates, one for each worker of a controller.
        repeats: measurements of a placement where measurements are noisy.
        learning_rate: of Adam.
        clip: largest norm of a gradient.
        decay: of the moving average that is the baseline.
        late: updates after which placements that fail are left out.
        normalise: divide what a reward is above the baseline by the batch's standard deviation.
        entropy: weight of the policy's entropy.
    """

    shape: Shape = Shape(hidden=128)
    K: int = 8
    repeats: int = 10
    learning_rate: float = 1e-3
    clip: float | None = 1.0
    decay: float = 0.9
    late: int = 5000
    normalise: bool = False
    entropy: float = 0.0


PAPER = ColocSettings()
TUNED = ColocSettings(
    shape=Shape(hidden=128, score="general", aligned=True),
    K=12,
    repeats=1,
    learning_rate=1e-2,
    normalise=True,
)


def run(search: Search) -> None:
    """Learn until the budget ends."""
    learn(search, "colocrl", learner)


def learner(problem: Problem, learning: Learning, samples: int, seed: int) -> Learner:
    """The learner in one of its settings.

    Raises:
        MissingExtra: PyTorch is not installed.
    """
    return make(problem, learning, PAPER if learning.settings == "paper" else TUNED, seed)


def make(problem: Problem, learning: Learning, settings: ColocSettings, seed: int) -> Learner:
    """The learner in any settings."""
    check_torch()
    from situate.policies.ascent import Ascent
    from situate.policies.group_policy import GroupPolicy
    from situate.solvers.colocrl_update import Reinforce
    from situate.solvers.sequence_learner import SequenceLearner, generator

    groups = group(problem, learning.grouping or "colocation", learning.groups)
    policy = GroupPolicy(problem, groups, settings.shape, generator(seed, 0))
    return SequenceLearner(
        groups,
        policy,
        Ascent(policy, "adam", settings.learning_rate, settings.clip),
        Reinforce(settings),
        placements=settings.K,
        repeats=settings.repeats if learning.noise else 1,
        failure=failure_seconds(problem),
        seed=seed,
    )
