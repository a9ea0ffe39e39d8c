"""Checks of a checkpoint's arrays before a trainer restores them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

State = Mapping[str, NDArray[np.generic]]

WITH_NAN = frozenset({"curve", "plain", "plain_valid"})
"""Arrays with NaN for missing measurements."""


def is_sound(state: State, own: State) -> bool:
    """True if a trainer may restore `state`.

    Args:
        state: arrays of a checkpoint by name.
        own: arrays of the trainer. Both must have the same names, types and shapes, except for the
            number of points of the curve.
    """
    return state.keys() == own.keys() and (
        all(_is_alike(name, state[name], array) for name, array in own.items())
        and _is_consistent(state)
    )


def _is_alike(name: str, array: NDArray[np.generic], own: NDArray[np.generic]) -> bool:
    grows = 1 if name == "curve" else 0
    if array.dtype != own.dtype or array.ndim != own.ndim:
        return False
    return array.shape[grows:] == own.shape[grows:] and _has_numbers(name, array)


def _has_numbers(name: str, array: NDArray[np.generic]) -> bool:
    numbers = array[~np.isnan(array)] if name in WITH_NAN else array
    return bool(np.isfinite(numbers).all())


def _is_consistent(state: State) -> bool:
    """True if the numbers of steps agree, and rewards and times are possible."""
    step, curve = int(state["step"]), state["curve"]
    steps, rewards, validations = curve.T
    times = np.concatenate([state[name] for name in ("plain", "plain_valid") if name in state])
    return (
        step == int(state["steps"][0]) == (int(steps[-1]) if len(steps) else 0)
        and bool((np.diff(steps, prepend=0) > 0).all() and (steps % 1 == 0).all())
        and not np.isnan(rewards).any()
        and (np.isnan(validations) == ("plain_valid" not in state)).all()
        and not (times < 0).any()
        and not np.less(state["square"], 0).any()
    )
