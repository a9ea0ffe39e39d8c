"""`hierarchical`: a grouper and a placer that learn together (A. Mirhoseini, A. Goldie et al., *A
Hierarchical Model for Device Placement*, ICLR 2018)."""

from __future__ import annotations

from dataclasses import replace

from situate.data.problem import Problem
from situate.policies.installed import check_torch
from situate.solvers.learned.hierarchical.settings import PAPER, TUNED, HierarchicalSettings
from situate.solvers.learned.learner import Learner, Learning


def learner(problem: Problem, learning: Learning, samples: int, seed: int) -> Learner:
    """The learner in one of its settings; the grouper begins with `learning.grouping`.

    Raises:
        MissingExtra: PyTorch is not installed.
    """
    settings = PAPER if learning.settings == "paper" else TUNED
    return make(problem, with_grouping(settings, learning), seed)


def with_grouping(settings: HierarchicalSettings, learning: Learning) -> HierarchicalSettings:
    """The settings with the grouping that `learning` asks for."""
    groups = settings.groups if learning.groups is None else learning.groups
    if learning.grouping is None:
        return replace(settings, groups=groups)
    trust = settings.trust or TUNED.trust
    return replace(settings, groups=groups, grouping=learning.grouping, trust=trust)


def make(problem: Problem, settings: HierarchicalSettings, seed: int) -> Learner:
    """The learner in any settings."""
    check_torch()
    from situate.solvers.learned.hierarchical.reinforce import hierarchical_learner

    return hierarchical_learner(problem, settings, seed)
