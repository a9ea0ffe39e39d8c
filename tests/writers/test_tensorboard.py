"""TensorBoard event files."""

from __future__ import annotations

import math
import resource
import sys
from pathlib import Path

import pytest

from situate.errors import MissingExtra, SituateError
from situate.writers.tensorboard import Scalars

pytest.importorskip("tensorboard")


def read(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Steps and values by tag, as TensorBoard shows them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder)).Reload()
    tags = events.Tags()["scalars"]
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in tags}


def write(folder: Path, values: dict[int, dict[str, float]]) -> None:
    scalars = Scalars(folder)
    for step, names in values.items():
        scalars.write(step, names)
    scalars.close()


def test_scalars_read_back_by_tag_and_step(tmp_path):
    write(tmp_path / "runs" / "post", {12: {"best": 2.0, "mean": 3.0}, 24: {"best": 1.5}})
    assert read(tmp_path / "runs" / "post") == {
        "best": [(12, 2.0), (24, 1.5)],
        "mean": [(12, 3.0)],
    }


def test_what_is_not_finite_is_left_out(tmp_path):
    write(tmp_path, {12: {"mean": math.nan, "best": math.inf}, 24: {"mean": 1.0}})
    assert read(tmp_path) == {"mean": [(24, 1.0)]}


def test_a_run_written_again_replaces_the_one_before(tmp_path, monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1e9)
    write(tmp_path, {12: {"best": 9.0}, 24: {"best": 8.0}, 36: {"best": 7.0}})
    monkeypatch.setattr("time.time", lambda: 2e9)
    write(tmp_path, {12: {"best": 2.0}, 24: {"best": 1.0}})
    assert read(tmp_path) == {"best": [(12, 2.0), (24, 1.0)]}


def test_what_was_written_can_be_read_at_once(tmp_path):
    scalars = Scalars(tmp_path)
    scalars.write(12, {"best": 2.0})
    assert read(tmp_path) == {"best": [(12, 2.0)]}
    scalars.close()


def test_on_a_full_disk_the_file_ends_with_a_whole_record(tmp_path):
    """A limit on the size of files stands for the disk."""
    scalars, contents = Scalars(tmp_path), []

    def fill():
        for step in range(100):
            scalars.write(step, {"best": 2.0})
            contents.append((step, 2.0))

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, before[1]))
    try:
        with pytest.raises(SituateError, match=r"cannot write .*: File too large"):
            fill()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    (file,) = tmp_path.iterdir()
    assert file.stat().st_size < 200
    assert read(tmp_path) == {"best": contents}
    # Once there is room, records go on where the last whole one ended.
    scalars.write(100, {"best": 1.0})
    scalars.close()
    assert read(tmp_path) == {"best": [*contents, (100, 1.0)]}


def test_a_folder_that_cannot_be_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SituateError, match="cannot write"):
        Scalars(tmp_path / "file" / "post")


def test_without_tensorboard_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard.summary.writer.record_writer", None)
    with pytest.raises(MissingExtra, match=r"situate\[report\]"):
        Scalars(tmp_path)
