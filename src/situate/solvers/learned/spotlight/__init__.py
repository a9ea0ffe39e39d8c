"""`spotlight`: proximal policy optimisation of a sequence-to-sequence policy (Y. Gao, L. Chen, B.
Li, *Spotlight: Optimizing Device Placement for Training Deep Neural Networks*, ICML 2018)."""

from __future__ import annotations

from situate.data.problem import Problem
from situate.policies.installed import check_torch
from situate.solvers.learned.learner import Learner, Learning
from situate.solvers.learned.spotlight.settings import PAPER, TUNED, SpotlightSettings


def learner(problem: Problem, learning: Learning, samples: int, seed: int) -> Learner:
    """The learner in one of its settings.

    Raises:
        MissingExtra: PyTorch is not installed.
    """
    return make(problem, learning, PAPER if learning.settings == "paper" else TUNED, seed)


def make(problem: Problem, learning: Learning, settings: SpotlightSettings, seed: int) -> Learner:
    """The learner in any settings; `learning.grouping` overrides theirs."""
    check_torch()
    from situate.solvers.learned.spotlight.update import spotlight_learner

    return spotlight_learner(problem, learning, settings, seed)
