"""The tables of a study are read as they were written, or a ReadError names the damage."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

import numpy as np
import pytest

from situate.errors import ReadError
from situate.evaluators.measurements import Measurements, Origin
from situate.study import Study, tables
from situate.study.file import StudyFile
from tests.study.studies import BATCH, HEADER, batch, content, edited, make_study, refused, state

ROOT = Path(__file__).parents[2]


# The checkpoint's arrays.
def test_a_checkpoint_gives_back_its_arrays(tmp_path: Path) -> None:
    with StudyFile(make_study(tmp_path / "a.study", batches=3), HEADER) as study:
        count, arrays = study.checkpoint()
    assert count == 12
    assert arrays is not None
    for name, array in state().items():
        assert arrays[name].dtype == array.dtype
        assert np.array_equal(arrays[name], array)
    assert arrays.keys() == state().keys()


def test_a_state_of_anything_but_arrays_of_numbers_is_not_kept(tmp_path: Path) -> None:
    with StudyFile(make_study(tmp_path / "a.study"), HEADER) as study:
        before = content(study)
        with pytest.raises(ValueError, match="Object arrays"):
            study.keep(4, lambda: {"x": np.array([{}])}, now=True)
        assert content(study) == before


@pytest.mark.parametrize(
    ("name", "samples_done", "header"),
    [
        ("logits", 24, b"'''"),
        ("logits", 24, b"("),
        ("logits", 24, b"{'descr': ',', 'fortran_order': False, 'shape': (1,)}"),
        (
            "logits",
            24,
            b"{'descr': '<f8', 'fortran_order': False, 'shape': (0, 99999999999999999999999)}",
        ),
        ("logits", "x", b"{'descr': '<f8', 'fortran_order': False, 'shape': (0,)}"),
        (b"logits", 24, b"{'descr': '<f8', 'fortran_order': False, 'shape': (0,)}"),
    ],
    ids=["text", "bracket", "type", "shape", "number", "name"],
)
def test_a_checkpoint_that_nothing_wrote_is_noticed(
    name: object, samples_done: object, header: bytes, tmp_path: Path
) -> None:
    array = b"\x93NUMPY\x01\x00" + (len(header) + 1).to_bytes(2, "little") + header + b"\n"
    connection = sqlite3.connect(make_study(tmp_path / "a"))
    connection.execute("DELETE FROM checkpoint")
    row = (
        name,
        samples_done,
        array,
        zlib.crc32(array, zlib.crc32(f"{name!s} {samples_done}".encode())),
    )
    connection.execute("INSERT INTO checkpoint VALUES (?, ?, ?, ?)", row)
    tables.write_count(connection, "checkpoint", 1)
    connection.commit()
    connection.close()
    with (
        StudyFile(tmp_path / "a", HEADER) as study,
        pytest.raises(ReadError, match="a: the checkpoint of the study is damaged; restore"),
    ):
        study.checkpoint()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE checkpoint SET done = 5",
        "UPDATE checkpoint SET array = 'x'",
        "UPDATE checkpoint SET array = x'00'",
        "UPDATE checkpoint SET name = 'a' WHERE name = 'count'",
        "UPDATE checkpoint SET checksum = 5 WHERE name = 'none'",
        "DELETE FROM checkpoint WHERE name = 'none'",
        "DELETE FROM checkpoint",
        "DELETE FROM counts WHERE name = 'checkpoint'",
    ],
)
def test_an_edited_checkpoint_is_noticed(statement: str, tmp_path: Path) -> None:
    path = make_study(tmp_path / "a")
    edited(path, statement)
    with (
        StudyFile(path, HEADER) as study,
        pytest.raises(ReadError, match="a: the checkpoint of the study is damaged; restore"),
    ):
        study.checkpoint()


FAST, SLOW = Origin("a: cores 0", 1.0), Origin("b: cores 0", 4.0, 4.0)
BY = (FAST, None, SLOW, FAST)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A study of a batch that two workers measured, and this process."""
    with StudyFile(tmp_path / "a", HEADER) as study:
        placements, measurements = batch(0)
        by_workers = Measurements(measurements.seconds, measurements.outcome, BY)
        study.record(np.arange(BATCH), placements, by_workers, 0)
        study.record(np.arange(1), placements[:1], Measurements(*_one(), (SLOW,)), 0, "again")
    return tmp_path / "a"


def _one() -> tuple[np.ndarray, np.ndarray]:
    return np.array([2.0]), np.zeros(1, np.uint8)


# The workers.
def test_every_sample_has_its_worker(path: Path) -> None:
    study = Study.read(path)
    assert study.workers == (FAST, SLOW)
    assert study.measurements.origins == BY
    with StudyFile(path, HEADER) as study:
        assert study.workers == [FAST, SLOW]
        assert study.stored_samples(0, batch(0)[0])[1].origins == BY
        [(_, _, measurements)] = study.batches(BATCH)
        assert measurements.origins == BY
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
