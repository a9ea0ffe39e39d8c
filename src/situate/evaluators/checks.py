"""Checks of what evaluators answer: they may be the user's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from situate.errors import SituateError
from situate.evaluators.measurements import OUTCOMES, Evaluator, Measurements


def checked(machine: Evaluator, found: Any, count: int) -> Measurements:
    """Measurements of so many placements, as an evaluator gave them, as arrays of the usual types.

    Raises:
        SituateError: not one finite time or failure for each.
    """
    who = f"evaluator {machine.name!r}"
    if not isinstance(found, Measurements):
        raise SituateError(
            f"{who} returned a {type(found).__name__}; measure must return Measurements(seconds, "
            "outcome)"
        )
    _check_arrays(who, found)
    if len(found) != count:
        raise SituateError(f"{who} measured {len(found)} of {count} placements")
    _check_values(who, found)
    seconds, outcome = found.seconds.astype(np.float64), found.outcome.astype(np.uint8)
    return Measurements(seconds, outcome, found.origins, found.details)


def _check_arrays(who: str, found: Measurements) -> None:
    for name, kinds, of in (("seconds", "f", "floats"), ("outcome", "iu", "integers")):
        array = getattr(found, name)
        if not isinstance(array, np.ndarray) or array.dtype.kind not in kinds or array.ndim != 1:
            was = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array)
            raise SituateError(f"{who}: {name}: must be an array (k,) of {of}, got {was}")
    if len(found.outcome) != len(found.seconds):
        raise SituateError(
            f"{who} gave {len(found.seconds)} seconds and {len(found.outcome)} outcomes"
        )


def _check_values(who: str, found: Measurements) -> None:
    unknown = (found.outcome < 0) | (found.outcome >= len(OUTCOMES))
    if unknown.any():
        known = ", ".join(f"{i} {name}" for i, name in enumerate(OUTCOMES))
        raise SituateError(f"{who} gave outcome {found.outcome[unknown][0]}; known: {known}")
    wrong = ~(found.seconds >= 0) | (found.ok & np.isinf(found.seconds))
    if wrong.any():
        raise SituateError(
            f"{who} measured {found.seconds[wrong][0]} seconds; a step that was completed takes "
            "some, one that was not infinitely many"
        )
