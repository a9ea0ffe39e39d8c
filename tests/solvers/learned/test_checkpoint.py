"""Arrays that a learner takes its state from, and others."""

from __future__ import annotations

import numpy as np
import pytest

from situate.errors import SituateError
from situate.solvers.learned.checkpoint import restored

OWN = {
    "logits": np.array([[0.5, -np.inf]]),
    "devices": np.zeros((0, 2), np.int32),
    "baseline": np.array([np.nan]),
    "baseline of 1": np.array([np.nan]),
    "steps": np.array([0]),
}


# A checkpoint is restored only if its arrays could be the learner's own.


def test_a_state_like_its_own_is_taken():
    state = {**OWN, "devices": np.ones((3, 2), np.int32)}
    assert restored(state, OWN, free=("devices",)) is state


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("logits", np.array([[np.nan, 0.0]])),
        ("devices", np.full((1, 2), -1, np.int32)),
        ("steps", np.array([-1])),
        ("steps", np.array([np.iinfo(np.int64).max])),
    ],
)
def test_numbers_that_no_learner_has_are_refused(name, array):
    with pytest.raises(SituateError, match=f"checkpoint's '{name}' holds numbers that no learner"):
        restored({**OWN, name: array}, OWN, free=("devices",))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"logits": OWN["logits"]}, "the checkpoint lacks 'baseline'"),
        ({**OWN, "more": OWN["steps"]}, "the checkpoint has an unknown 'more'"),
        ({**OWN, "steps": np.array([0, 1])}, r"the checkpoint's 'steps' is int64 \(2,\), not"),
        ({**OWN, "steps": np.array([0.0])}, r"the checkpoint's 'steps' is float64 \(1,\), not"),
    ],
)
def test_names_types_and_shapes_are_the_learner_s(state, message):
    with pytest.raises(SituateError, match=message):
        restored(state, OWN)
