"""Samples are as they were written, or an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from situate.errors import ReadError
from situate.study.file import StudyFile
from tests.study.studies import HEADER, edited, made, record, refused

ROOT = Path(__file__).parents[2]


EDITS = [
    "UPDATE samples SET seconds = 1 WHERE number = 5",
    "UPDATE samples SET seconds = 'fast' WHERE number = 5",
    "UPDATE samples SET outcome = 'crash' WHERE number = 5",
    "UPDATE samples SET outcome = x'ff' WHERE number = 5",
    "UPDATE samples SET batch = 5 WHERE number = 5",
    "UPDATE samples SET placement = 'x' WHERE number = 5",
    "UPDATE samples SET placement = (SELECT placement FROM samples) WHERE number = 5",
    "UPDATE samples SET checksum = 5 WHERE number = 5",
    "UPDATE samples SET number = 1000 WHERE number = 5",
    "DELETE FROM samples WHERE number = 5",
    "DELETE FROM samples WHERE number >= 5",
]


@pytest.mark.parametrize("statement", EDITS)
def test_an_edited_sample_is_noticed(statement: str, tmp_path: Path) -> None:
    path = made(tmp_path / "a")
    edited(path, statement)
    refused("a: sample 5 of the study is damaged; restore", path, ReadError)


@pytest.mark.parametrize("statement", EDITS)
def test_an_edited_final_is_noticed(statement: str, tmp_path: Path) -> None:
    path = made(tmp_path / "a")
    with StudyFile(path, HEADER) as study:
        record(study, 0, "finals")
        record(study, 4, "finals")
    edited(path, statement.replace("samples", "finals"))
    refused("a: sample (5|1000) of the study is damaged; restore", path, ReadError)


def test_a_sample_too_many_is_noticed(tmp_path: Path) -> None:
    path = made(tmp_path / "a")
    edited(
        path,
        "INSERT INTO samples SELECT 24, 24, seconds, outcome, placement, NULL, 0 FROM samples "
        "LIMIT 1",
    )
    refused("a: sample 24 of the study is damaged", path, ReadError)


def test_a_sample_of_another_study_is_noticed(tmp_path: Path) -> None:
    """Its checksum is right; the count is not."""
    path, longer = made(tmp_path / "a"), made(tmp_path / "b", batches=7)
    edited(
        path,
        f"ATTACH '{longer}' AS longer",
        then="INSERT INTO samples SELECT * FROM longer.samples WHERE number = 24",
    )
    refused("the study, which has 1 samples too many, is damaged", path, ReadError)


@pytest.mark.parametrize("statement", ["UPDATE counts SET rows = rows - 1", "DELETE FROM counts"])
def test_an_edited_count_is_noticed(statement: str, tmp_path: Path) -> None:
    path = made(tmp_path / "a")
    edited(path, f"{statement} WHERE name = 'samples'")
    refused("the count of samples in the study is damaged", path, ReadError)
