"""The groups that a learner places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from situate.data.problem import Problem
from situate.grouping import COUNTED, Groups, group, make_groups
from situate.solvers.learned.learner import Learning
from situate.solvers.learned.levels import block_of, op_weights


def grouped(problem: Problem, learning: Learning, rule: str, count: int | None) -> Groups:
    """The groups that were asked for, or else those of a rule and its number, which also holds for
    another rule that takes one."""
    name = learning.grouping or rule
    default = count if name in COUNTED else None
    return group(problem, name, default if learning.groups is None else learning.groups)


def coarser_groups(
    problem: Problem, groups: Groups, rule: str, counts: Sequence[int]
) -> list[Groups]:
    """About so many groups each, rising: unions of the next ones, and the last ones of `groups`. A
    group is in the union that holds most of its weight where the rule makes so many groups."""
    weights = op_weights(problem, groups.told_costs)
    # (units,) an op of each unit: any, for all of them are in one group.
    op_of_unit = np.unique(problem.unit, return_index=True)[1]
    levels: list[Groups] = []
    # Finest first: each level is made of unions of the level that it refines into.
    for count in reversed(counts):
        few = group(problem, rule, count).of_op.astype(np.int64)
        union = block_of(groups, few, weights)
        told_costs = groups.told_costs
        groups = replace(
            make_groups(problem, union[groups.of_op[op_of_unit]]), told_costs=told_costs
        )
        levels.insert(0, groups)
    return levels
