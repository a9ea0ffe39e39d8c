"""A study knows who measured what, and notices what was changed of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from situate.errors import ReadError
from situate.evaluators.measurements import Measurements, Origin
from situate.study import Study
from situate.study.file import StudyFile
from tests.study.studies import BATCH, HEADER, batch, edited, refused

FAST, SLOW = Origin("a: cores 0", 1.0), Origin("b: cores 0", 4.0, 4.0)
BY = (FAST, None, SLOW, FAST)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A study of a batch that two workers measured, and this process."""
    with StudyFile(tmp_path / "a", HEADER) as study:
        placements, measured = batch(0)
        by_workers = Measurements(measured.seconds, measured.outcome, BY)
        study.record(np.arange(BATCH), placements, by_workers, 0)
        study.record(np.arange(1), placements[:1], Measurements(*_one(), (SLOW,)), 0, "again")
    return tmp_path / "a"


def _one() -> tuple[np.ndarray, np.ndarray]:
    return np.array([2.0]), np.zeros(1, np.uint8)


def test_every_sample_has_its_worker(path: Path) -> None:
    found = Study.read(path)
    assert found.workers == (FAST, SLOW)
    assert found.measurements.origins == BY
    with StudyFile(path, HEADER) as study:
        assert study.workers == [FAST, SLOW]
        assert study.stored_samples(0, batch(0)[0])[1].origins == BY
        [(_, _, measured)] = study.batches(BATCH)
        assert measured.origins == BY
        assert study.stored_samples(0, batch(0)[0][:1], "again")[1].origins == (SLOW,)


@pytest.mark.parametrize(
    ("statement", "worker"),
    [
        ("UPDATE workers SET reference = 2 WHERE number = 1", 1),
        ("UPDATE workers SET pace = 'slow' WHERE number = 1", 1),
        ("UPDATE workers SET place = x'ff' WHERE number = 0", 0),
        ("DELETE FROM workers WHERE number = 1", 1),
        ("DELETE FROM workers WHERE number = 0", 1),
    ],
)
def test_an_edited_worker_is_noticed(statement: str, worker: int, path: Path) -> None:
    edited(path, statement)
    refused(f"a: worker {worker} of the study is damaged; restore", path, ReadError)


def test_a_sample_of_another_worker_is_noticed(path: Path) -> None:
    edited(path, "UPDATE samples SET worker = 0 WHERE number = 2")
    refused("a: sample 2 of the study is damaged", path, ReadError)
