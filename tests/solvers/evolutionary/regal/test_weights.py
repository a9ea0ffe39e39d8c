"""Files of weights: their purpose, and everything that may be wrong with one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.errors import ReadError, SituateError  # noqa: E402
from situate.files import safetensors  # noqa: E402
from situate.solvers.evolutionary.regal import regal, weights  # noqa: E402
from situate.solvers.evolutionary.regal.settings import SETTINGS, RegalSettings  # noqa: E402


def about(settings: RegalSettings = SETTINGS["paper", "time"], **changes: Any) -> weights.About:
    values = {
        "objective": "time",
        "devices": 2,
        "settings": settings,
        "data": "abc",
        "command": "situate train regal",
        "situate": "0.1.0",
        "steps": 7,
        "curve": [(500, -1.0, None), (1000, -0.9, -0.95)],
    }
    return weights.About(**(values | changes))


# A file holds the best parameters, and reads back as it was written.


def test_parameters_are_those_of_the_best_reward_in_validation() -> None:
    curve = [(500, -0.9, -0.95), (1000, -0.8, -0.95), (1500, -0.7, -0.97)]
    assert about(curve=curve, steps=1500).best_steps == 1000
    assert about(curve=[(500, -1.0, None)], steps=600).best_steps == 600


def policy(of: weights.About, seed: int = 1) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return weights.new_policy(of.objective, of.devices, of.settings, generator)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "w.safetensors"
    weights.write(made, policy(about()), about())
    return made


def changed(path: Path, **changes: Any) -> Path:
    """The file with other texts about it; names with two underscores lead into parts."""
    arrays, texts = safetensors.read(path, weights.MOST_BYTES)
    said = json.loads(texts["situate"])
    for name, value in changes.items():
        *parts, last = name.split("__")
        at = said
        for part in parts:
            at = at[part]
        at[last] = value
    safetensors.write(path, arrays, {"situate": json.dumps(said)})
    return path


def test_what_is_written_is_read(path: Path) -> None:
    result, said = weights.read(path)
    assert said == about()
    wanted = policy(about()).state_dict()
    assert all(torch.equal(result.state_dict()[name], wanted[name]) for name in wanted)


@pytest.mark.parametrize("which", SETTINGS)
def test_weights_take_less_than_a_megabyte(which: Any, tmp_path: Path) -> None:
    of = about(SETTINGS[which], objective=which[1])
    weights.write(tmp_path / "w", policy(of), of)
    assert (tmp_path / "w").stat().st_size < 2**20
    assert weights.read(tmp_path / "w")[1] == of


# Weights for another purpose, and damaged or hostile files, are refused.


def test_another_objective_or_number_of_devices_is_refused(path: Path) -> None:
    weights.check_for(path, about(), "time", 2)
    with pytest.raises(SituateError, match="trained for time, not for memory: give others"):
        weights.check_for(path, about(), "memory", 2)
    with pytest.raises(SituateError, match="trained for 2 devices, not for 3: train others"):
        weights.check_for(path, about(), "time", 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 1}, "weights of version 1, and this situate reads 2"),
        ({"format": "other"}, "its description: format: "),
        ({"objective": "throughput2"}, "its description: objective: "),
        ({"devices": 3}, "and its settings say"),
        ({"devices": 10**9}, "devices: must be between 1 and 64"),
        ({"devices": -1}, "devices: must be between 1 and 64"),
        ({"settings__shape__width": 10**9}, "width: must be between 1 and 1024"),
        ({"settings__shape__rounds": 10**9}, "rounds: must be between 0 and 256"),
        ({"settings__shape__update": "lstm"}, "settings.shape.update: "),
        ({"settings__proposed__placement": -1}, "levels: must be between 0 and 1024"),
        ({"settings__proposed__scheduling": 10**9}, "levels: must be between 1 and 1024"),
        ({"settings__proposed": {"placement": 0, "scheduling": 0}}, "levels: must be between"),
        ({"settings__shape__width": 16}, "and its settings say"),
        ({"settings__breeding__population": 1}, "two chromosomes at least"),
        ({"settings__breeding__elites": 2}, "elites and mutants are shares"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_hostile_texts_are_refused_with_the_path(
    path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ReadError) as error:
        weights.read(changed(path, **changes))
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_tensor_that_is_missing_or_too_many_is_named(path: Path) -> None:
    arrays, texts = safetensors.read(path, weights.MOST_BYTES)
    lacking = {name: array for name, array in arrays.items() if name != "head.0.bias"}
    safetensors.write(path, lacking, texts)
    with pytest.raises(ReadError, match=r"lacks tensor 'head\.0\.bias'"):
        weights.read(path)
    safetensors.write(path, {**arrays, "more": np.zeros(1, np.float32)}, texts)
    with pytest.raises(ReadError, match="has an unknown tensor 'more'"):
        weights.read(path)


def test_arrays_of_others_are_no_weights(path: Path) -> None:
    safetensors.write(path, {"x": np.zeros(1, np.float32)}, {"format": "pt"})
    with pytest.raises(ReadError, match="holds no weights of REGAL"):
        weights.read(path)


def test_every_truncation_is_noticed(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(0, len(whole), 997):
        path.write_bytes(whole[:length])
        with pytest.raises(ReadError):
            weights.read(path)


def test_a_pickle_is_not_opened(path: Path) -> None:
    torch.save({"a": torch.zeros(1)}, path)
    with pytest.raises(ReadError):
        weights.read(path)


# The names of the package's own weights say their purpose.


def test_weights_of_the_package_are_what_their_names_say() -> None:
    files = sorted(regal.WEIGHTS.glob("*-*-*-*.safetensors"))
    assert files
    for path in files:
        objective, devices, settings, trained = path.stem.split("-")
        assert trained in regal.SETS
        _, about = weights.read(path)
        weights.check_for(path, about, objective, int(devices))
        assert about.settings == SETTINGS[settings, objective]  # type: ignore[index]
        assert path.stat().st_size < 2**20
        assert about.steps == about.settings.steps
        assert len(about.data) == 64
        assert about.command.startswith("situate train regal ")
