"""A worker answers every task, in a form that can be sent."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from situate.errors import SituateError
from situate.evaluators.measurements import Evaluator, Measurements
from situate.evaluators.workers.messages import Answer, Ready, Task
from situate.evaluators.workers.worker import Worker
from tests.evaluators.workers.faulty import AnswersOtherwise, Counting, RaisesAt, lock, too_few

TASK = Task(np.ones((2, 3), np.int32), np.array([4, 5]))


def _answer(evaluator: Evaluator) -> Answer:
    """The answer that the manager gets."""
    worker = Worker()
    assert worker.unpack(pickle.dumps(evaluator)) == Ready()
    reply: Answer = pickle.loads(pickle.dumps(worker.do(TASK)))  # noqa: S301
    return reply


# Measurements.
def test_samples_are_measured_by_their_number(tmp_path: Path) -> None:
    measurements = _answer(Counting(tmp_path)).value
    assert measurements is not None
    assert measurements.seconds.tolist() == [5 * 1.03] * 2


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (tuple, r"evaluator 'counting' returned a tuple; measure must return Measurements\("),
        (lock, r"evaluator 'counting' returned a lock; measure must return Measurements\("),
        (too_few, "evaluator 'counting' measured 0 of 2 placements"),
    ],
)
def test_an_invalid_answer_is_an_error_that_can_be_sent(
    answer: Callable[[], Any], message: str, tmp_path: Path
) -> None:
    reply = _answer(AnswersOtherwise(tmp_path, answer=answer))
    assert reply.value is None
    with pytest.raises(SituateError, match=message):
        raise reply.error or AssertionError


def test_measurements_are_sent_as_plain_arrays(tmp_path: Path) -> None:
    reply = _answer(AnswersOtherwise(tmp_path, answer=Narrow))
    assert reply.value is not None
    assert type(reply.value) is Measurements
    assert reply.value.seconds.dtype == np.float64


class Narrow(Measurements):
    """Measurements of other widths, with something that cannot be sent."""

    def __init__(self) -> None:
        super().__init__(np.ones(2, np.float32), np.zeros(2, np.int64))  # type: ignore[arg-type]
        object.__setattr__(self, "lock", lock())


# Errors keep their place and can be unpickled.
def test_an_error_says_where_it_was_raised(tmp_path: Path) -> None:
    error = _answer(RaisesAt(tmp_path, number=4)).error
    assert str(error) == "Unsendable: 1 and 2"
    assert error is not None
    assert "in harm" in error.__notes__[0]


def test_an_evaluator_that_cannot_be_unpacked_is_an_error() -> None:
    reply = Worker().unpack(b"no pickle")
    assert isinstance(reply, Answer)
    assert "cannot be unpacked there" in str(reply.error)
