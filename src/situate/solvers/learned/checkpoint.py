"""Checks of a checkpoint before a learner takes its state from there."""

from __future__ import annotations

from collections.abc import Collection

from situate.errors import SituateError
from situate.solvers.learned.learner import State


def restored(state: State, own: State, free: Collection[str] = ()) -> State:
    """The state, if it has the names, types and shapes of the learner's own.

    Args:
        state: of the checkpoint.
        own: of the learner now.
        free: names whose first dimension may differ.

    Raises:
        SituateError: the name that is missing, unknown or of another shape.
    """
    for name in sorted(own.keys() ^ state.keys()):
        which = "lacks" if name in own else "has an unknown"
        raise SituateError(f"the checkpoint {which} {name!r}; it is another learner's")
    for name, array in own.items():
        got, wanted = state[name], array
        skip = 1 if name in free else 0
        if got.dtype != wanted.dtype or got.shape[skip:] != wanted.shape[skip:]:
            raise SituateError(
                f"the checkpoint's {name!r} is {got.dtype} {got.shape}, not {wanted.dtype} "
                f"{wanted.shape}; it is another learner's"
            )
    return state
