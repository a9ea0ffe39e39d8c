"""Measurements of placements."""

from __future__ import annotations

import numpy as np
import pytest

from situate.errors import SituateError
from situate.evaluators.measurements import Measurements, checked_measurements
from tests.solvers.learned.test_checks import Answering

RAN = Measurements(np.array([1.0, 2.0]), np.array([0, 0], np.uint8))
FAILED = Measurements(np.array([np.inf, 0.5]), np.array([1, 3], np.uint8))


def test_measurements_follow_one_another() -> None:
    both = RAN.then(FAILED)
    assert both.seconds.tolist() == [1.0, 2.0, np.inf, 0.5]
    assert both.outcome.tolist() == [0, 0, 1, 3]
    assert both.outcome.dtype == np.uint8
    assert len(both) == 4


def test_a_failure_counts_as_so_many_seconds_whatever_it_took() -> None:
    assert RAN.then(FAILED).times(100.0).tolist() == [1.0, 2.0, 100.0, 100.0]
    assert RAN.then(FAILED).ok.tolist() == [True, True, False, False]


FAILED = Measurements(np.array([1.0, np.inf], np.float32), np.array([0, 2], np.int64))


def test_the_types_are_the_usual_ones() -> None:
    found = checked_measurements(Answering(), FAILED, 2)
    assert found.seconds.dtype == np.float64
    assert found.outcome.dtype == np.uint8
    assert found.ok.tolist() == [True, False]


def test_as_many_are_measured_as_were_given() -> None:
    with pytest.raises(SituateError, match=r"^evaluator 'answering' measured 2 of 3 placements$"):
        checked_measurements(Answering(), FAILED, 3)
