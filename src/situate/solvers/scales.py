"""Scales: blocks of groups that a search moves as one, from a few large ones to single groups."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from situate.grouping import Groups, heavy_edge
from situate.grouping.labels import members
from situate.problem import Problem

COARSEST = 12
"""Blocks of the coarsest scale; every other has twice as many as the one before."""

Scale = list[NDArray[np.int64]]
"""Blocks of groups; every group is in one of them."""


def scales(problem: Problem, groups: Groups) -> list[Scale]:
    """All scales that are coarser than the groups, then the groups one by one."""
    return [*_coarser(problem, groups), members(np.arange(len(groups)))]


def _coarser(problem: Problem, groups: Groups) -> Iterator[Scale]:
    """Contraction of heavy edges, once a scale; a group is in the block that has most of its
    seconds."""
    count = COARSEST
    while count < len(groups):
        label = heavy_edge.labels(problem, count)[problem.unit]
        yield members(_blocks(groups, label, problem.seconds.min(axis=1)))
        count *= 2


def _blocks(
    groups: Groups, label: NDArray[np.int64], seconds: NDArray[np.float64]
) -> NDArray[np.int64]:
    """(g,) the label (n,) that most of a group's seconds (n,) have."""
    labels = int(label.max()) + 1
    pairs, pair = np.unique(groups.of_op * labels + label, return_inverse=True)
    group, of_pair = np.divmod(pairs, labels)
    rising = np.lexsort((np.bincount(pair, seconds), group))
    last = np.append(np.diff(group[rising]) > 0, True)
    return np.asarray(of_pair[rising[last]], np.int64)
