"""Levels: blocks of groups that a search moves as one, from a few large ones to single groups."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Floats
from situate.data.problem import Problem
from situate.grouping import Groups, heavy_edge
from situate.grouping.labels import members
from situate.grouping.work import op_work, unit_work

COARSEST_BLOCKS = 12
"""Blocks of the coarsest level; every other has twice as many as the one before."""

Level = list[NDArray[np.int64]]
"""Blocks of groups; every group is in one of them."""


def levels(problem: Problem, groups: Groups) -> list[Level]:
    """The groups one by one, then those of contraction of heavy edges that are coarser: by the
    seconds of ops where the groups were made with them, else by their work."""
    told_costs = groups.told_costs
    partitions = heavy_edge.partitions(
        problem, coarser(len(groups)), None if told_costs else unit_work(problem)
    )
    return levels_of(problem, groups, partitions, op_weights(problem, told_costs))


def op_weights(problem: Problem, told_costs: bool) -> Floats:
    """(n,) seconds of ops on their fastest devices, or where costs are not told their work."""
    return np.asarray(problem.seconds.min(axis=1)) if told_costs else op_work(problem)


def coarser(count: int) -> list[int]:
    """Blocks of every level that has fewer than `count`, the finest first."""
    counts = [COARSEST_BLOCKS]
    while counts[0] < count:
        counts.insert(0, 2 * counts[0])
    return counts[1:]


def levels_of(
    problem: Problem, groups: Groups, partitions: Iterable[NDArray[np.int64]], weights: Floats
) -> list[Level]:
    """The groups one by one, then the partitions, labels (units,) each: a group is in the block
    that has most of its weights (n,)."""
    coarser = [block_of(groups, label[problem.unit], weights) for label in partitions]
    return [members(label) for label in (np.arange(len(groups)), *coarser)]


def block_of(groups: Groups, label: NDArray[np.int64], weights: Floats) -> NDArray[np.int64]:
    """(g,) the label (n,) that most of a group's weights (n,) have."""
    labels = int(label.max()) + 1
    # Each pair of a group and a label as one number; (pairs,) and of every op (n,) its pair.
    pairs, pair = np.unique(groups.of_op * labels + label, return_inverse=True)
    group, of_pair = np.divmod(pairs, labels)
    # (pairs,) by group, then by weight: the last pair of a group has most of it.
    rising = np.lexsort((np.bincount(pair, weights), group))
    last = np.append(np.diff(group[rising]) > 0, True)
    return np.asarray(of_pair[rising[last]], np.int64)
