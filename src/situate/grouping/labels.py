"""Labels of units from properties of their ops, such as a common module."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem


def unit_labels(problem: Problem, keys: Sequence[Hashable]) -> NDArray[np.int64]:
    """Labels (units,) that are equal for equal keys; `keys` has one for every op, and a unit has
    the key of its first op."""
    # first (units,): units are numbered from 0, so sorted unique numbers stand at their own index.
    first = np.unique(problem.unit, return_index=True)[1]
    label: dict[Hashable, int] = {}
    return np.array([label.setdefault(keys[op], len(label)) for op in first.tolist()], np.int64)


def members(label: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Units (u,) of each label, in the order of the labels."""
    # Sorted by label, members (units,) lie in one run a label; `ends` is where the runs meet. A
    # stable sort keeps the order within a label.
    ends = np.cumsum(np.unique(label, return_counts=True)[1])[:-1]
    return np.split(np.argsort(label, kind="stable"), ends)
