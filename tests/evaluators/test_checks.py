"""Answers of evaluators become arrays of the usual types; the tests of the learners' checks have
those that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from situate.errors import SituateError
from situate.evaluators.checks import checked
from situate.evaluators.measurements import Measurements
from tests.solvers.learned.test_checks import Answering

FAILED = Measurements(np.array([1.0, np.inf], np.float32), np.array([0, 2], np.int64))


def test_the_types_are_the_usual_ones() -> None:
    found = checked(Answering(), FAILED, 2)
    assert found.seconds.dtype == np.float64
    assert found.outcome.dtype == np.uint8
    assert found.ok.tolist() == [True, False]


def test_as_many_are_measured_as_were_given() -> None:
    with pytest.raises(SituateError, match=r"^evaluator 'answering' measured 2 of 3 placements$"):
        checked(Answering(), FAILED, 3)
