"""The groups that a learner places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from situate.data.problem import Problem
from situate.grouping import METHODS_WITH_COUNT, Groups, group, make_groups
from situate.solvers.learned.learner import Learning
from situate.solvers.learned.levels import block_of, op_weights


def grouped(problem: Problem, learning: Learning, rule: str, count: int | None) -> Groups:
    """The groups that `learning` asks for; `rule` and `count` are the defaults.

    The default count also applies to another rule that takes a count.
    """
    name = learning.grouping or rule
    default = count if name in METHODS_WITH_COUNT else None
    return group(problem, name, default if learning.groups is None else learning.groups)


def coarser_groups(
    problem: Problem, groups: Groups, rule: str, counts: Sequence[int]
) -> list[Groups]:
    """Nested levels of about `counts` groups each, in rising order; the last ones are unions of
    `groups`.

    Each level consists of unions of the next one. A group joins the union that holds most of its
    weight in the rule's own grouping of that count.
    """
    weights = op_weights(problem, groups.told_costs)
    # (units,) any op of each unit, because all ops of a unit are in one group.
    op_of_unit = np.unique(problem.unit, return_index=True)[1]
    levels: list[Groups] = []
    # Finest first: each level consists of unions of the finer level before it.
    for count in reversed(counts):
        few = group(problem, rule, count).of_op.astype(np.int64)
        union = block_of(groups, few, weights)
        told_costs = groups.told_costs
        groups = replace(
            make_groups(problem, union[groups.of_op[op_of_unit]]), told_costs=told_costs
        )
        levels.insert(0, groups)
    return levels
