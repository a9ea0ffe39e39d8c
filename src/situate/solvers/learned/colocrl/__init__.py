"""`colocrl`: policy gradient of a sequence-to-sequence policy over colocation groups (A. Mirhoseini
et al., *Device Placement Optimization with Reinforcement Learning*, ICML 2017)."""

from __future__ import annotations

from dataclasses import dataclass

from situate.data.problem import Problem
from situate.policies.installed import check_torch
from situate.policies.shape import Shape
from situate.solvers.learned.learner import Learner, Learning

PAPER_SHAPE = Shape(hidden=128)


@dataclass(frozen=True)
class ColocSettings:
    """The defaults are the paper's, and ours where it is silent; see docs/methods/colocrl.md.

    Attributes:
        shape: of the policy.
        grouping, groups: what is placed as one, as `situate.grouping.group` takes them.
        K: placements between two updates, one for each worker of a controller.
        repeats: measurements of a placement where measurements are noisy.
        learning_rate: of Adam.
        clip: largest norm of a gradient; None for no limit.
        decay: of the moving average that is the baseline.
        late: updates after which placements that fail are left out.
        normalise: take for a reward how many standard deviations the logarithm of a placement's
            seconds is above the mean of its batch, or where all are equal above the baseline.
        entropy: weight of the policy's entropy.
    """

    shape: Shape = PAPER_SHAPE
    grouping: str = "colocation"
    groups: int | None = None
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
    grouping="heavy-edge",
    groups=96,
    K=12,
    repeats=1,
    learning_rate=3e-3,
    normalise=True,
    entropy=3.0,
)


def learner(problem: Problem, learning: Learning, samples: int, seed: int) -> Learner:
    """The learner in one of its settings.

    Raises:
        MissingExtra: PyTorch is not installed.
    """
    return make(problem, learning, PAPER if learning.settings == "paper" else TUNED, seed)


def make(problem: Problem, learning: Learning, settings: ColocSettings, seed: int) -> Learner:
    """The learner in any settings; a grouping asked for goes before theirs."""
    check_torch()
    from situate.solvers.learned.colocrl.update import colocrl_learner

    return colocrl_learner(problem, learning, settings, seed)
