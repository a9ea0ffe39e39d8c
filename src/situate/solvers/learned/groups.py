"""The groups that a learner places, coarser unions of them, and blocks that move as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Floats
from situate.data.problem import Problem
from situate.grouping import METHODS_WITH_COUNT, Groups, group, heavy_edge, make_groups
from situate.grouping.groups import Weights
from situate.grouping.units import members, op_bytes, op_work, unit_bytes, unit_work
from situate.solvers.learned.learner import Learning

COARSEST_BLOCKS = 12
"""Number of blocks in the coarsest level; each finer level has twice as many."""

Level = list[NDArray[np.int64]]
"""Blocks of groups; every group is in one of them."""


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
    weights = op_weights(problem, groups.weights)
    # (units,) any op of each unit, because all ops of a unit are in one group.
    op_of_unit = np.unique(problem.unit, return_index=True)[1]
    levels: list[Groups] = []
    # Finest first: each level consists of unions of the finer level before it.
    for count in reversed(counts):
        few = group(problem, rule, count).of_op.astype(np.int64)
        union = _block_of(groups, few, weights)
        label = union[groups.of_op[op_of_unit]]
        groups = replace(make_groups(problem, label), weights=groups.weights)
        levels.insert(0, groups)
    return levels


def levels(problem: Problem, groups: Groups) -> list[Level]:
    """Levels of blocks: single groups, then coarser partitions by contraction of heavy edges.

    Ops are weighted as the groups' rule weighs them; by their work if it weighs none.
    """
    unit_weights = {"seconds": None, "bytes": unit_bytes}.get(groups.weights or "", unit_work)
    partitions = heavy_edge.partitions(
        problem, coarser(len(groups)), unit_weights(problem) if unit_weights else None
    )
    return levels_of(problem, groups, partitions, op_weights(problem, groups.weights))


def op_weights(problem: Problem, weights: Weights | None) -> Floats:
    """(n,) seconds of ops on their fastest devices, bytes of their tensors, or their work, which
    is also the weight if a rule has none."""
    if weights == "seconds":
        return np.asarray(problem.seconds.min(axis=1))
    return op_bytes(problem) if weights == "bytes" else op_work(problem)


def coarser(count: int) -> list[int]:
    """Numbers of blocks of the levels with fewer than `count`, the finest first."""
    counts = [COARSEST_BLOCKS]
    while counts[0] < count:
        counts.insert(0, 2 * counts[0])
    return counts[1:]


def levels_of(
    problem: Problem, groups: Groups, partitions: Iterable[NDArray[np.int64]], weights: Floats
) -> list[Level]:
    """Levels of blocks: single groups, then one level per partition.

    Args:
        partitions: labels (units,) each; a group joins the block with most of its weight.
        weights: (n,) of ops.
    """
    coarser = [_block_of(groups, label[problem.unit], weights) for label in partitions]
    return [members(label) for label in (np.arange(len(groups)), *coarser)]


def _block_of(groups: Groups, label: NDArray[np.int64], weights: Floats) -> NDArray[np.int64]:
    """(g,) the label with most of each group's weight, from labels (n,) and weights (n,) of ops."""
    labels = int(label.max()) + 1
    # Each pair of a group and a label is one number: (pairs,), and (n,) the pair of each op.
    pairs, pair = np.unique(groups.of_op * labels + label, return_inverse=True)
    group, of_pair = np.divmod(pairs, labels)
    # (pairs,) by group, then by weight: the last pair of a group has most of its weight.
    rising = np.lexsort((np.bincount(pair, weights), group))
    last = np.append(np.diff(group[rising]) > 0, True)
    return np.asarray(of_pair[rising[last]], np.int64)
