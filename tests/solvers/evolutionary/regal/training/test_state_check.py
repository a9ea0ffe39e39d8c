"""Arrays that a trainer may go on from, and others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.solvers.evolutionary.regal.training.state_check import is_sound  # noqa: E402
from tests.solvers.evolutionary.regal.training.test_trainer import run, trainer  # noqa: E402

NAMES = ["parameters", "mean", "square", "steps", "step", "best", "curve", "plain", "plain_valid"]


@pytest.fixture(scope="module")
def state() -> dict[str, Any]:
    """The state of a training after six steps, at its second point."""
    trained = trainer()
    run(trained, 6)
    return dict(trained.state())


def is_sound_with(state: dict[str, Any], **changed: Any) -> bool:
    return is_sound({**state, **changed}, trainer().state())


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
