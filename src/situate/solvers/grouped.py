"""The groups that a learner places."""

from __future__ import annotations

from situate.grouping import COUNTED, Groups, group
from situate.problem import Problem
from situate.solvers.learner import Learning


def grouped(problem: Problem, learning: Learning, rule: str, count: int | None) -> Groups:
    """The groups that were asked for, or else those of a rule and its number, which also holds for
    another rule that takes one."""
    chosen = learning.grouping or rule
    default = count if chosen in COUNTED else None
    return group(problem, chosen, default if learning.groups is None else learning.groups)
