"""Measurements of placements, and the check of an evaluator's answer."""

from __future__ import annotations

import numpy as np
import pytest

from situate.errors import SituateError
from situate.evaluators.measurements import Measurements, checked_measurements
from tests.solvers.learned.test_checks import Answering

COMPLETED = Measurements(np.array([1.0, 2.0]), np.array([0, 0], np.uint8))
FAILED = Measurements(np.array([np.inf, 0.5]), np.array([1, 3], np.uint8))


# Measurements as values.
def test_measurements_follow_one_another() -> None:
    both = COMPLETED.then(FAILED)
    assert both.seconds.tolist() == [1.0, 2.0, np.inf, 0.5]
    assert both.outcome.tolist() == [0, 0, 1, 3]
    assert both.outcome.dtype == np.uint8
    assert len(both) == 4


def test_a_failure_counts_as_so_many_seconds_whatever_it_took() -> None:
    assert COMPLETED.then(FAILED).times(100.0).tolist() == [1.0, 2.0, 100.0, 100.0]
    assert COMPLETED.then(FAILED).ok.tolist() == [True, True, False, False]


ONE_TIME_ONE_FAILURE = Measurements(np.array([1.0, np.inf], np.float32), np.array([0, 2], np.int64))


# Answers of evaluators that users bring.
def test_the_types_are_the_usual_ones() -> None:
    result = checked_measurements(Answering(), ONE_TIME_ONE_FAILURE, 2)
    assert result.seconds.dtype == np.float64
    assert result.outcome.dtype == np.uint8
    assert result.ok.tolist() == [True, False]


def test_as_many_are_measured_as_were_given() -> None:
    with pytest.raises(SituateError, match=r"^evaluator 'answering' measured 2 of 3 placements$"):
        checked_measurements(Answering(), ONE_TIME_ONE_FAILURE, 3)
