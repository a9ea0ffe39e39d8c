"""Checks of what evaluators answer: they may be the user's own."""

from __future__ import annotations

from math import isinf
from typing import Any

import numpy as np

from situate.errors import SituateError
from situate.evaluators.measurements import OUTCOMES, Evaluator, Measurements


def checked(machine: Evaluator, found: Any, count: int) -> Measurements:
    """Measurements of so many placements, as an evaluator gave them, as arrays of the usual types.

    Raises:
        SituateError: not one finite time or failure for each.
    """
    if not isinstance(found, Measurements):
        raise SituateError(
            f"{_who(machine)} returned a {type(found).__name__}; measure must return "
            "Measurements(seconds, outcome)"
        )
    _check_arrays(machine, found)
    if len(found) != count:
        raise SituateError(f"{_who(machine)} measured {len(found)} of {count} placements")
    _check_values(machine, found)
    return Measurements(
        found.seconds.astype(np.float64, copy=False),
        found.outcome.astype(np.uint8, copy=False),
        found.origins,
        found.details,
    )


def _who(machine: Evaluator) -> str:
    return f"evaluator {machine.name!r}"


def _check_arrays(machine: Evaluator, found: Measurements) -> None:
    for name, kinds, of in (("seconds", "f", "floats"), ("outcome", "iu", "integers")):
        array = getattr(found, name)
        if not isinstance(array, np.ndarray) or array.dtype.kind not in kinds or array.ndim != 1:
            was = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array)
            raise SituateError(f"{_who(machine)}: {name}: must be an array (k,) of {of}, got {was}")
    if len(found.outcome) != len(found.seconds):
        raise SituateError(
            f"{_who(machine)} gave {len(found.seconds)} seconds and {len(found.outcome)} outcomes"
        )


def _check_values(machine: Evaluator, found: Measurements) -> None:
    # One by one: on the few of a message numpy would take several times as long.
    for seconds, outcome in zip(found.seconds.tolist(), found.outcome.tolist(), strict=True):
        if not 0 <= outcome < len(OUTCOMES):
            known = ", ".join(f"{i} {name}" for i, name in enumerate(OUTCOMES))
            raise SituateError(f"{_who(machine)} gave outcome {outcome}; known: {known}")
        if not seconds >= 0 or (outcome == 0 and isinf(seconds)):
            raise SituateError(
                f"{_who(machine)} measured {seconds} seconds; a step that was completed takes "
                "some, one that was not infinitely many"
            )
