"""The file that a training goes on from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from situate.errors import ReadError, SituateError
from situate.policies.shapes import GraphShape
from situate.solvers.evolutionary.regal.training import checkpoint

MINE = {"data": "abc", "seed": 0, "settings": GraphShape()}
ARRAYS = {"a": np.arange(3.0), "step": np.array(7)}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    checkpoint.write(tmp_path / "c.npz", MINE, ARRAYS)
    found = checkpoint.read(tmp_path / "c.npz", MINE)
    assert found is not None
    assert found.keys() == ARRAYS.keys()
    assert all(np.array_equal(found[name], ARRAYS[name]) for name in ARRAYS)


def test_where_there_is_none_a_training_begins(tmp_path: Path) -> None:
    assert checkpoint.read(tmp_path / "c.npz", MINE) is None


def test_that_of_another_training_is_refused(tmp_path: Path) -> None:
    checkpoint.write(tmp_path / "c.npz", MINE, ARRAYS)
    yours = MINE | {"seed": 1, "settings": GraphShape(rounds=2)}
    with pytest.raises(SituateError, match="another training, of other seed, settings: give"):
        checkpoint.read(tmp_path / "c.npz", yours)


def test_a_damaged_one_is_named_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    checkpoint.write(path, MINE, ARRAYS)
    whole = path.read_bytes()
    damaged = [whole[:length] for length in range(0, len(whole), 41)]
    for data in [*damaged, b"", b"x" * 100, whole[:-1]]:
        path.write_bytes(data)
        with pytest.raises(ReadError, match="remove it to begin anew"):
            checkpoint.read(path, MINE)


def test_an_array_alone_is_no_checkpoint(tmp_path: Path) -> None:
    with (tmp_path / "c.npz").open("wb") as file:
        np.save(file, np.arange(3.0))
    with pytest.raises(ReadError, match="is no checkpoint, or damaged: remove it"):
        checkpoint.read(tmp_path / "c.npz", MINE)


def test_a_folder_in_its_place_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="cannot be read: Is a directory"):
        checkpoint.read(tmp_path, MINE)


def test_a_pickle_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    np.savez(path, training=np.array("{}"), a=np.array([print], object))
    with pytest.raises(ReadError, match="is no checkpoint, or damaged: remove it") as error:
        checkpoint.read(path, {})
    assert "unsafely" not in str(error.value)
