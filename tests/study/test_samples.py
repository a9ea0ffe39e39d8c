"""Samples are as they were written, or an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from situate.errors import ReadError
from situate.study import StudyFile
from tests.study.studies import HEADER, edited, made

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE samples SET seconds = 1 WHERE number = 5",
        "UPDATE samples SET seconds = 'fast' WHERE number = 5",
        "UPDATE samples SET outcome = 'crash' WHERE number = 5",
        "UPDATE samples SET outcome = x'ff' WHERE number = 5",
        "UPDATE samples SET batch = 5 WHERE number = 5",
        "UPDATE samples SET placement = 'x' WHERE number = 5",
        "UPDATE samples SET placement = (SELECT placement FROM samples) WHERE number = 5",
        "UPDATE samples SET number = 1000 WHERE number = 5",
        "DELETE FROM samples WHERE number = 5",
    ],
)
def test_an_edited_sample_is_noticed(statement: str, tmp_path: Path) -> None:
    path = made(tmp_path / "a")
    edited(path, statement)
    with (
        StudyFile(path, HEADER) as study,
        pytest.raises(ReadError, match="a: sample 5 of the study is damaged; restore"),
    ):
        list(study.batches(24))
