"""People read a study from Python and by SQL."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from situate.errors import ReadError, SituateError
from situate.evaluators.measurements import Measurements
from situate.study import Study
from situate.study.file import StudyFile
from situate.study.format import TABLES
from tests.study.studies import (
    BATCH,
    BATCHES,
    HEADER,
    batch,
    edited,
    fill,
    make_study,
    record,
    with_header,
)

PAGE = (Path(__file__).parents[2] / "docs" / "study-format.md").read_text()


# Readable studies: finished, empty, killed.
def test_a_study_holds_header_measurements_and_placements(tmp_path: Path) -> None:
    study = Study.read(str(make_study(tmp_path / "a.study")))
    assert study.header == HEADER
    assert len(study) == BATCH * BATCHES
    for first in range(0, len(study), BATCH):
        placements, measurements = batch(first)
        part = slice(first, first + BATCH)
        assert np.array_equal(study.measurements.seconds[part], measurements.seconds)
        assert np.array_equal(study.measurements.outcome[part], measurements.outcome)
        assert (study.batch[part] == first).all()
        assert np.array_equal(study.placement(first + 1), placements[1])
    assert np.array_equal(list(study.placements())[-1], batch(20)[0][-1])


def test_a_finalist_has_its_placement_and_all_its_times(tmp_path: Path) -> None:
    with StudyFile(tmp_path / "a", HEADER) as study:
        fill(study)
        record(study, 0, "finals")
        placements, measurements = batch(0)
        times = measurements.seconds
        again = Measurements(times[1:2], np.zeros(1, np.uint8))
        study.record(np.array([4]), placements[1:2], again, 4, "finals")
    finalists = Study.read(tmp_path / "a").finalists()
    assert np.array_equal([placement for placement, _ in finalists], placements)
    assert [len(seconds) for _, seconds in finalists] == [1, 2, 1, 1]
    assert finalists[1][1].tolist() == [times[1], times[1]]
    assert finalists[3][1].tolist() == [np.inf]


def test_reading_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    before = make_study(tmp_path / "a").read_bytes()
    Study.read(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == before
    assert os.listdir(tmp_path) == ["a"]


def test_a_study_without_samples_is_read(tmp_path: Path) -> None:
    study = Study.read(make_study(tmp_path / "a", batches=0))
    assert len(study) == 0
    assert list(study.placements()) == []


def test_a_study_that_was_killed_is_read_with_its_log(tmp_path: Path) -> None:
    with StudyFile(tmp_path / "a", HEADER) as study:
        fill(study)
        for name in os.listdir(tmp_path):
            shutil.copy(tmp_path / name, tmp_path / name.replace("a", "killed", 1))
    assert (tmp_path / "killed-wal").stat().st_size > 0
    assert len(Study.read(tmp_path / "killed")) == BATCH * BATCHES


# Studies that cannot be read, and damaged ones.
def test_a_study_that_a_search_is_writing_is_not_read(tmp_path: Path) -> None:
    with (
        StudyFile(tmp_path / "a", HEADER),
        pytest.raises(SituateError, match="a: the study is in use by another process; wait"),
    ):
        Study.read(tmp_path / "a")


def test_a_file_that_is_no_study_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no study\n" * 500)
    for name, match in (("missing", "no such file"), (".", "a folder"), ("text", "not a study")):
        with pytest.raises(ReadError, match=match):
            Study.read(tmp_path / name)
    assert os.listdir(tmp_path) == ["text"]


@pytest.mark.parametrize(
    "header", [{"ops": "x"}, {"ops": "-3"}, {"ops": "1" * 19}, {"devices": ""}, {"devices": "0"}]
)
def test_a_header_that_was_edited_is_noticed(header: dict[str, str], tmp_path: Path) -> None:
    with_header(make_study(tmp_path / "a"), **header)
    with pytest.raises(ReadError, match="a: the header of the study is damaged"):
        Study.read(tmp_path / "a")


def test_no_memory_is_taken_on_the_word_of_a_header(tmp_path: Path) -> None:
    with_header(make_study(tmp_path / "a"), ops="2000000000")
    with pytest.raises(ReadError, match="a: sample 0 of the study is damaged"):
        Study.read(tmp_path / "a").placement(0)


@pytest.mark.parametrize(
    ("statement", "sample"),
    [
        ("UPDATE samples SET number = 127 WHERE number = 23", 127),
        ("DELETE FROM samples WHERE number = 23", 23),
        ("DELETE FROM samples WHERE number BETWEEN 8 AND 11", 8),
        ("DELETE FROM samples", 0),
    ],
)
def test_a_sample_that_is_missing_is_named(statement: str, sample: int, tmp_path: Path) -> None:
    edited(make_study(tmp_path / "a"), statement)
    with pytest.raises(ReadError, match=f"a: sample {sample} of the study is damaged; restore"):
        Study.read(tmp_path / "a")


# The page on the format.
def test_the_page_shows_the_tables_as_they_are() -> None:
    block = re.search(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    without_comments = re.sub(r"--.*", "", block[1])
    text = [" ".join(part.split()) for part in without_comments.split(";") if part.strip()]
    assert [part.replace("( ", "(").replace(" )", ")") for part in text] == list(TABLES)


def test_the_pages_queries_run(tmp_path: Path) -> None:
    connection = sqlite3.connect(make_study(tmp_path / "a"))
    queries = re.findall(r'^    sqlite3 \S+ "(.*?)"$', PAGE, re.MULTILINE | re.DOTALL)
    assert len(queries) >= 2
    answers = [connection.execute(query).fetchall() for query in queries]
    connection.close()
    ok = [batch(first)[1].seconds[:-1] for first in range(0, BATCH * BATCHES, BATCH)]
    assert dict(answer[:2] for answer in answers[0])["ok"] == np.min(ok)


def test_the_pages_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_study(tmp_path / "post.study")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 3
    page: dict[str, Any] = {}
    for block in blocks:
        exec(block, page)
    assert page["logits"].shape == (2, len(page["problem"].graph.ops))
