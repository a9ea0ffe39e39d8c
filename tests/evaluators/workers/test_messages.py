"""A message is equal after encoding and decoding."""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from situate.evaluators.measurements import Measurements, Origin
from situate.evaluators.workers.messages import (
    Answer,
    Failure,
    Hello,
    Job,
    Ready,
    Task,
    Unready,
    decode,
    encode,
)

MEASUREMENTS = Measurements(np.array([1.5, np.inf]), np.array([0, 2], np.uint8))


# Compact forms: tasks and measurements.
@given(
    arrays(st.sampled_from(["<i4", "<i8", "<f8"]), array_shapes(min_dims=1, max_dims=3)),
    st.integers(0, 2**62),
    st.text(max_size=5),
)
def test_samples_are(placements: Any, first: int, avoid: str) -> None:
    task = Task(placements, first + np.arange(len(placements)), avoid)
    copy_decoded = decode(encode(task))
    assert isinstance(copy_decoded, Task)
    assert copy_decoded.placements.dtype == placements.dtype
    np.testing.assert_array_equal(copy_decoded.placements, placements)
    np.testing.assert_array_equal(copy_decoded.numbers, task.numbers)
    assert copy_decoded.avoid == avoid
    copy_decoded.placements[:] = 0  # they belong to who reads them


def test_columns_of_a_table_are_samples_too() -> None:
    table = np.arange(12, dtype=np.int32).reshape(3, 4)
    task = Task(table[:, ::2], np.arange(3))
    np.testing.assert_array_equal(decode(encode(task)).placements, table[:, ::2])


@pytest.mark.parametrize("placements", [("a", "b"), np.array(["a", None], object)])
def test_a_task_without_an_array_is_equal(placements: Any) -> None:
    copy_decoded = decode(encode(Task(placements, np.arange(2))))
    assert list(copy_decoded.placements) == list(placements)


@pytest.mark.parametrize(
    "measurements",
    [
        MEASUREMENTS,
        replace(MEASUREMENTS, origins=(Origin("here", 1.0), None)),
        replace(MEASUREMENTS, details=("one", "two")),
    ],
)
def test_measurements_are(measurements: Measurements) -> None:
    copy_decoded = decode(encode(Answer(measurements))).value
    np.testing.assert_array_equal(copy_decoded.seconds, measurements.seconds)
    np.testing.assert_array_equal(copy_decoded.outcome, measurements.outcome)
    assert (copy_decoded.seconds.dtype, copy_decoded.outcome.dtype) == (np.float64, np.uint8)
    assert (copy_decoded.origins, copy_decoded.details) == (
        measurements.origins,
        measurements.details,
    )


# All other messages are pickled, under the names of their modules.
@pytest.mark.parametrize(
    "message",
    [
        Hello("here"),
        Ready("place"),
        Unready("no core"),
        Failure("fell"),
        Job((1, "two"), "job"),
        Answer((1, 2)),
        Answer(None),
    ],
)
def test_all_else_is(message: Any) -> None:
    assert decode(encode(message)) == message


def test_an_error_is() -> None:
    error = decode(encode(Answer(None, ValueError("no")))).error
    assert isinstance(error, ValueError)
    assert str(error) == "no"


PROGRAM = """
import sys
from dataclasses import dataclass

from situate.evaluators.workers.messages import pack


@dataclass(frozen=True)
class Wanted:
    most: int


if __name__ == "__main__":
    sys.stdout.buffer.write(pack((Wanted(3), Wanted)))
"""


def test_classes_of_a_program_are_those_of_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wanting.py").write_text(PROGRAM)
    path = [str(tmp_path), *sys.path]
    text = subprocess.run(
        [sys.executable, "-m", "wanting"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        stdout=subprocess.PIPE,
        check=True,
    )
    monkeypatch.syspath_prepend(tmp_path)
    wanting = importlib.import_module("wanting")
    copy_decoded = pickle.loads(text.stdout)  # noqa: S301
    assert copy_decoded == (wanting.Wanted(3), wanting.Wanted)
