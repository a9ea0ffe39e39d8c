"""Options of a method that learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from situate.errors import SituateError
from situate.evaluators.measurements import Measurements
from situate.solvers.learned.learner import Learning

# Options are checked when they are made, with the remedy.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": "papr"}, "unknown settings 'papr'; did you mean 'paper'?"),
        ({"settings": None}, "unknown settings None; known: paper, release, tuned"),
        ({"grouping": "heavy_edge"}, "unknown grouping 'heavy_edge'; did you mean 'heavy-edge'?"),
        ({"grouping": []}, "unknown grouping []; known: bytes, colocation"),
        ({"groups": 0}, "groups: must be an integer of at least 1, got 0"),
        ({"groups": 2.5}, "groups: must be an integer of at least 1, got 2.5"),
        ({"groups": 10**7}, "groups: must be at most 1,000,000, got 10000000"),
        ({"noise": -0.1}, "noise: must be finite and not negative, got -0.1"),
        ({"noise": np.nan}, "noise: must be finite and not negative, got nan"),
        ({"noise": np.inf}, "noise: must be finite and not negative, got inf"),
        ({"noise": "0.1"}, "noise: must be finite and not negative, got '0.1'"),
    ],
)
def test_bad_values_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SituateError) as error:
        Learning(**changes)
    assert str(error.value).startswith(message)


class Clock:
    """A machine that takes a second for any placement."""

    name, at_once, finalists = "clock", None, 0

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        return Measurements(np.ones(len(placements)), np.zeros(len(placements), np.uint8))


def test_noise_beside_an_evaluator_is_refused_with_the_remedy() -> None:
    with pytest.raises(SituateError) as error:
        Learning(noise=0.1, evaluator=Clock())
    assert str(error.value) == (
        "noise: is of simulated measurements, and an evaluator brings its own: leave noise out, "
        "or give situate.SimulatedMachine(problem, noise, seed)"
    )
    assert Learning(evaluator=Clock()).noise == 0.0


def test_numbers_of_numpy_are_numbers() -> None:
    assert Learning(groups=np.int64(3), noise=np.float32(0.5)).groups == 3  # type: ignore[arg-type]
