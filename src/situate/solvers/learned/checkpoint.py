"""Checks of a checkpoint before a learner restores it."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from situate.errors import SituateError
from situate.solvers.learned.learner import State

MOST_COUNTED = 2**48
"""Largest plausible count in a checkpoint."""

AVERAGES = frozenset({"baseline", "numbers"})
"""Names of arrays that hold NaN before the first measurement."""


def restored(state: State, own: State, free: Collection[str] = ()) -> State:
    """The state, after checks that its names, types, shapes and numbers fit the learner.

    Args:
        state: of the checkpoint.
        own: the learner's current state.
        free: names whose first dimension may differ.

    Raises:
        SituateError: an array is missing, unknown, of another type or shape, or has impossible
            numbers.
    """
    for name in sorted(own.keys() ^ state.keys()):
        which = "lacks" if name in own else "has an unknown"
        raise SituateError(f"the checkpoint {which} {name!r}; it is another learner's")
    for name, expected in own.items():
        array = state[name]
        skip = 1 if name in free else 0
        if array.dtype != expected.dtype or array.shape[skip:] != expected.shape[skip:]:
            raise SituateError(
                f"the checkpoint's {name!r} is {array.dtype} {array.shape}, not {expected.dtype} "
                f"{expected.shape}; it is another learner's"
            )
        if not _is_possible(name, np.asarray(array)):
            raise SituateError(f"the checkpoint's {name!r} holds numbers that no learner has")
    return state


def _is_possible(name: str, array: NDArray[np.generic]) -> bool:
    """True if integers are between 0 and `MOST_COUNTED`, and only averages hold NaN."""
    if array.dtype.kind in "iu":
        return bool((np.greater_equal(array, 0) & np.less_equal(array, MOST_COUNTED)).all())
    return name.partition(" of ")[0] in AVERAGES or not np.isnan(array).any()
