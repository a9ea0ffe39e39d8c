"""A learner's arrays are as they were written, or an error."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

import numpy as np
import pytest

from situate.errors import ReadError
from situate.study import counts
from situate.study.file import StudyFile
from tests.study.studies import HEADER, content, edited, made, state

ROOT = Path(__file__).parents[2]


def test_a_checkpoint_gives_back_its_arrays(tmp_path: Path) -> None:
    with StudyFile(made(tmp_path / "a.study", batches=3), HEADER) as study:
        done, held = study.checkpoint()
    assert done == 12
    assert held is not None
    for name, array in state().items():
        assert held[name].dtype == array.dtype
        assert np.array_equal(held[name], array)
    assert held.keys() == state().keys()


def test_a_state_of_anything_but_arrays_of_numbers_is_not_kept(tmp_path: Path) -> None:
    with StudyFile(made(tmp_path / "a.study"), HEADER) as study:
        before = content(study)
        with pytest.raises(ValueError, match="Object arrays"):
            study.keep(4, lambda: {"x": np.array([{}])}, now=True)
        assert content(study) == before


@pytest.mark.parametrize(
    ("name", "done", "header"),
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
    name: object, done: object, header: bytes, tmp_path: Path
) -> None:
    array = b"\x93NUMPY\x01\x00" + (len(header) + 1).to_bytes(2, "little") + header + b"\n"
    connection = sqlite3.connect(made(tmp_path / "a"))
    connection.execute("DELETE FROM checkpoint")
    row = name, done, array, zlib.crc32(array, zlib.crc32(f"{name!s} {done}".encode()))
    connection.execute("INSERT INTO checkpoint VALUES (?, ?, ?, ?)", row)
    counts.write(connection, "checkpoint", 1)
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
    path = made(tmp_path / "a")
    edited(path, statement)
    with (
        StudyFile(path, HEADER) as study,
        pytest.raises(ReadError, match="a: the checkpoint of the study is damaged; restore"),
    ):
        study.checkpoint()
