"""Checkpoints of a training: their files, and arrays that no training has left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.errors import ReadError, SituateError  # noqa: E402
from situate.policies.shapes import GraphShape  # noqa: E402
from situate.solvers.evolutionary.regal.training import checkpoint  # noqa: E402
from situate.solvers.evolutionary.regal.training.checkpoint import is_sound  # noqa: E402
from tests.solvers.evolutionary.regal.training.test_trainer import run, trainer  # noqa: E402

MINE = {"data": "abc", "seed": 0, "settings": GraphShape()}
ARRAYS = {"a": np.arange(3.0), "step": np.array(7)}


# The file of a checkpoint is read back, or refused with the remedy.


def test_what_is_written_is_read(tmp_path: Path) -> None:
    checkpoint.write(tmp_path / "c.npz", MINE, ARRAYS)
    result = checkpoint.read(tmp_path / "c.npz", MINE)
    assert result is not None
    assert result.keys() == ARRAYS.keys()
    assert all(np.array_equal(result[name], ARRAYS[name]) for name in ARRAYS)


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


NAMES = ["parameters", "mean", "square", "steps", "step", "best", "curve", "plain", "plain_valid"]


@pytest.fixture(scope="module")
def state() -> dict[str, Any]:
    """The state of a training after six steps, at its second point."""
    trained = trainer()
    run(trained, 6)
    return dict(trained.state())


def is_sound_with(state: dict[str, Any], **changed: Any) -> bool:
    return is_sound({**state, **changed}, trainer().state())


# Arrays are restored only if this training could have written them.


def test_a_training_goes_on_from_its_own_state(state: dict[str, Any]) -> None:
    assert list(state) == NAMES
    assert is_sound(state, trainer().state())
    assert is_sound(trainer().state(), trainer().state())


def test_without_validation_the_curve_has_none() -> None:
    alone = trainer(valid=False)
    run(alone, 3)
    assert is_sound(alone.state(), trainer(valid=False).state())
    assert not is_sound(alone.state(), trainer().state())


@pytest.mark.parametrize("name", NAMES)
def test_no_array_is_missing(name: str, state: dict[str, Any]) -> None:
    others = {other: array for other, array in state.items() if other != name}
    assert not is_sound(others, trainer().state())


def test_no_array_is_unknown(state: dict[str, Any]) -> None:
    assert not is_sound_with(state, another=np.zeros(3))


@pytest.mark.parametrize("name", NAMES)
def test_no_array_has_another_shape(name: str, state: dict[str, Any]) -> None:
    array = state[name]
    assert not is_sound_with(state, **{name: array[None]})
    assert not is_sound_with(state, **{name: array.ravel()[:0]})
    assert not is_sound_with(state, **{name: np.append(array, array)})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float16, np.complex128, np.int8, np.str_, np.bool_])
@pytest.mark.filterwarnings("ignore")
def test_no_array_has_another_type(name: str, dtype: type, state: dict[str, Any]) -> None:
    assert not is_sound_with(state, **{name: state[name].astype(dtype)})


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["parameters", "mean", "square", "best", "curve"])
def test_numbers_are_finite(name: str, number: float, state: dict[str, Any]) -> None:
    array = state[name].copy()
    array.flat[1] = number
    assert not is_sound_with(state, **{name: array})


@pytest.mark.parametrize("name", ["plain", "plain_valid"])
def test_times_of_plain_brkga_are_finite_or_yet_unknown(name: str, state: dict[str, Any]) -> None:
    assert is_sound_with(state, **{name: np.full_like(state[name], np.nan)})
    for number in (np.inf, -1.0):
        assert not is_sound_with(state, **{name: np.full_like(state[name], number)})


@pytest.mark.parametrize(
    "changed",
    [
        {"step": np.array(7)},
        {"step": np.array(-6)},
        {"steps": np.array([3])},
        {"step": np.array(0), "steps": np.array([0])},
        {"curve": np.zeros((0, 3))},
        {"curve": np.array([(6.0, 1.0, 1.0), (3.0, 1.0, 1.0)])},
        {"curve": np.array([(2.5, 1.0, 1.0), (6.0, 1.0, 1.0)])},
        {"curve": np.array([(3.0, 1.0, np.nan), (6.0, 1.0, 1.0)])},
    ],
)
def test_the_numbers_of_steps_agree(changed: dict[str, Any], state: dict[str, Any]) -> None:
    assert not is_sound_with(state, **changed)


def test_a_mean_square_is_not_negative(state: dict[str, Any]) -> None:
    assert not is_sound_with(state, square=-np.ones_like(state["square"]))
