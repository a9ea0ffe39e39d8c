"""The study file of a running search, and the stand-in for a search without a study."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from situate.data.arrays import Placement
from situate.errors import SituateError
from situate.evaluators.measurements import Measurements
from situate.study import Study, file
from situate.study.file import NoStudy, StudyFile
from tests.study.studies import (
    BATCH,
    BATCHES,
    HEADER,
    batch,
    content,
    fill,
    make_study,
    record,
    state,
)


# Without a study nothing is stored.
def test_nothing_recorded_is_known_afterwards():
    placements = np.zeros((1, 3), np.int32)
    with NoStudy() as study:
        study.record(np.arange(1), placements, Measurements(np.ones(1), np.zeros(1, np.uint8)), 0)
        study.keep(1, dict)
        assert len(study.stored_samples(0, placements)[0]) == 0
        assert study.checkpoint() == (0, None)
        assert list(study.batches(1)) == []


ROOT = Path(__file__).parents[2]


# Samples and batches, in any order of recording.
def test_recorded_samples_are_known_after_reopening(tmp_path: Path) -> None:
    path = make_study(tmp_path / "a.study")
    with StudyFile(path, HEADER) as study:
        placements, measurements = batch(8)
        rows, expected_value = study.stored_samples(8, placements)
        assert rows.tolist() == [0, 1, 2, 3]
        assert np.array_equal(expected_value.seconds, measurements.seconds)
        assert np.array_equal(expected_value.outcome, measurements.outcome)


def _known(study: StudyFile | NoStudy, first: int, placements: Placement) -> list[int]:
    return study.stored_samples(first, placements)[0].tolist()


def test_only_recorded_samples_are_known(tmp_path: Path) -> None:
    placements = np.concatenate([batch(first)[0] for first in (0, 4, 8)])
    with StudyFile(make_study(tmp_path / "a.study", batches=2), HEADER) as study:
        assert _known(study, 0, placements) == list(range(8))
        assert _known(study, 6, placements[6:]) == [0, 1]
        assert _known(study, 8, placements[8:]) == []


def test_samples_of_a_batch_are_recorded_in_any_order(tmp_path: Path) -> None:
    placements, measurements = batch(4)
    with StudyFile(make_study(tmp_path / "a.study", batches=1), HEADER) as study:
        for row in (3, 1):
            one = Measurements(measurements.seconds[[row]], measurements.outcome[[row]])
            study.record(np.array([4 + row]), placements[[row]], one, 4)
    assert len(Study.read(tmp_path / "a.study")) == 4
    with StudyFile(tmp_path / "a.study", HEADER) as study:
        rows, expected_value = study.stored_samples(4, placements)
        assert rows.tolist() == [1, 3]
        assert np.array_equal(expected_value.seconds, measurements.seconds[[1, 3]])
        rest = Measurements(measurements.seconds[[0, 2]], measurements.outcome[[0, 2]])
        study.record(np.array([4, 6]), placements[[0, 2]], rest, 4)
        assert _known(study, 4, placements) == [0, 1, 2, 3]
    assert len(Study.read(tmp_path / "a.study")) == 8


def test_batches_come_as_they_were_recorded(tmp_path: Path) -> None:
    with StudyFile(make_study(tmp_path / "a.study"), HEADER) as study:
        stored = list(study.batches(12))
    assert [first for first, _, _ in stored] == [0, 4, 8]
    for first, placements, measurements in stored:
        assert np.array_equal(placements, batch(first)[0])
        assert np.array_equal(measurements.seconds, batch(first)[1].seconds)


# Checkpoints, and the bytes of the file after restarts.
def test_a_checkpoint_waits_until_the_last_one_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StudyFile(make_study(tmp_path / "a.study", batches=1), HEADER) as study:
        study.keep(0, state)
        assert study.checkpoint()[0] == BATCH
        monkeypatch.setattr(file, "CHECKPOINT_SECONDS", 0.0)
        study.keep(0, state)
        assert study.checkpoint()[0] == 0


def test_a_file_has_the_same_bytes_whatever_came_first_and_however_often_it_was_kept(
    tmp_path: Path,
) -> None:
    stored = []
    for name, rows, checkpoints in (("a", (0, 1, 2, 3), 1), ("b", (2, 0, 3, 1), 5)):
        placements, measurements = batch(4)
        with StudyFile(make_study(tmp_path / name, batches=1), HEADER) as study:
            for row in rows:
                one = Measurements(measurements.seconds[[row]], measurements.outcome[[row]])
                study.record(np.array([4 + row]), placements[[row]], one, 4)
            for _ in range(checkpoints):
                study.keep(8, state, now=True)
        stored.append((tmp_path / name).read_bytes())
    assert stored[0] == stored[1]


def without_change_counter(path: Path) -> bytes:
    """The bytes of a study, less SQLite's count of changes."""
    data = path.read_bytes()
    return data[:24] + data[28:92] + data[96:]


def killed(path: Path, batches: int) -> None:
    """Leave the study of a search that recorded so many batches and was killed."""
    with StudyFile(path.with_name("running"), HEADER) as study:
        fill(study, batches)
        for name in ("running", "running-wal"):
            shutil.copy(path.with_name(name), path.with_name(name.replace("running", path.name)))


@pytest.mark.parametrize("batches", [3, BATCHES])
def test_a_search_that_was_killed_and_went_on_leaves_the_bytes_of_one_that_ran_through(
    batches: int, tmp_path: Path
) -> None:
    killed(tmp_path / "a", batches)
    with StudyFile(tmp_path / "a", HEADER) as study:
        for first in range(batches * BATCH, BATCHES * BATCH, BATCH):
            record(study, first)
            study.keep(first + BATCH, state, now=True)
    through = without_change_counter(make_study(tmp_path / "b"))
    assert without_change_counter(tmp_path / "a") == through


def test_a_search_in_several_starts_leaves_the_bytes_of_one_that_ran_through(
    tmp_path: Path,
) -> None:
    for first in range(0, BATCHES * BATCH, BATCH):
        with StudyFile(tmp_path / "a", HEADER) as study:
            record(study, first)
            study.keep(first + BATCH, state, now=True)
    through = without_change_counter(make_study(tmp_path / "b"))
    assert without_change_counter(tmp_path / "a") == through


def test_no_path_keeps_nothing() -> None:
    with StudyFile.open(None, HEADER) as study:
        assert isinstance(study, NoStudy)
        record(study, 0)
        study.keep(4, state, now=True)
        assert _known(study, 0, batch(0)[0]) == []
        assert study.checkpoint() == (0, None)
        assert list(study.batches(4)) == []


def test_a_closed_study_is_one_file(tmp_path: Path) -> None:
    make_study(tmp_path / "a.study")
    assert os.listdir(tmp_path) == ["a.study"]


def test_opening_a_study_without_adding_to_it_leaves_it_as_it_is(tmp_path: Path) -> None:
    before = make_study(tmp_path / "a").read_bytes()
    with StudyFile(tmp_path / "a", HEADER) as study:
        content(study)
    assert (tmp_path / "a").read_bytes() == before


# Other placements and damaged files are noticed.
def test_another_placement_of_a_sample_is_noticed(tmp_path: Path) -> None:
    placements = batch(4)[0].copy()
    placements[2, 5] = (placements[2, 5] + 1) % 3
    with (
        StudyFile(make_study(tmp_path / "a.study"), HEADER) as study,
        pytest.raises(SituateError, match=r"a\.study: made by another version .*: sample 6 diff"),
    ):
        study.stored_samples(4, placements)


def test_a_damaged_study_never_gives_other_measurements(tmp_path: Path) -> None:
    path = make_study(tmp_path / "a")
    whole = path.read_bytes()
    with StudyFile(path, HEADER) as study:
        right = content(study)
    stored = []
    for damaged in _damaged(whole):
        path.write_bytes(damaged)
        stored.append(_content_or_error(path))
    errors = [item for item in stored if item != right]
    assert all(isinstance(error, str) and "\n" not in error for error in errors)
    assert 20 < len(errors) < len(stored)


def _content_or_error(path: Path) -> list[bytes] | str:
    try:
        with StudyFile(path, HEADER) as study:
            return content(study)
    except SituateError as error:
        return str(error)


def _damaged(data: bytes) -> Iterator[bytes]:
    """With a byte changed, here and there, and cut off."""
    for position in range(0, len(data), 523):
        changed = bytes([data[position] ^ 0x15])
        yield data[:position] + changed + data[position + 1 :]
    for size in range(1000, len(data), 2777):
        yield data[:size]
