"""`colocrl`: policy gradient of a sequence-to-sequence policy over colocation groups (A. Mirhoseini
et al., *Device Placement Optimization with Reinforcement Learning*, ICML 2017)."""

from __future__ import annotations

from situate.data.problem import Problem
from situate.policies.installed import check_torch
from situate.solvers.learned.colocrl.settings import PAPER, TUNED, ColocSettings
from situate.solvers.learned.learner import Learner, Learning


def learner(problem: Problem, learning: Learning, samples: int, seed: int) -> Learner:
    """The learner in one of its settings.

    Raises:
        MissingExtra: PyTorch is not installed.
    """
    return make(problem, learning, PAPER if learning.settings == "paper" else TUNED, seed)


def make(problem: Problem, learning: Learning, settings: ColocSettings, seed: int) -> Learner:
    """The learner in any settings; `learning.grouping` overrides theirs."""
    check_torch()
    from situate.solvers.learned.colocrl.update import colocrl_learner

    return colocrl_learner(problem, learning, settings, seed)
