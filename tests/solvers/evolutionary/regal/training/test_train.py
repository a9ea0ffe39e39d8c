"""A training from folders to a file of weights, left and gone on with."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.data.cluster import Cluster  # noqa: E402
from situate.errors import ReadError, SituateError  # noqa: E402
from situate.solvers.evolutionary.regal import weights  # noqa: E402
from situate.solvers.evolutionary.regal.settings import SETTINGS  # noqa: E402
from situate.solvers.evolutionary.regal.training import train as module  # noqa: E402
from situate.solvers.evolutionary.regal.training.train import (  # noqa: E402
    CHECKPOINT,
    Options,
    settings_of,
    train,
)
from tests.solvers.evolutionary.regal.training.test_data_set import TIME, filled, graph  # noqa: E402
from tests.solvers.evolutionary.regal.training.test_trainer import SMALL  # noqa: E402


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Options:
    monkeypatch.setattr(module, "SETTINGS", {("tuned", "time"): SMALL})
    monkeypatch.setattr(module, "POINT_STEPS", 3)
    filled(tmp_path / "data" / "train", a=graph("a", 5), b=graph("b", 6))
    filled(tmp_path / "data" / "valid", c=graph("c", 7), a=graph("a", 5))
    return Options(tmp_path / "data", tmp_path / "out", TIME, steps=9, copies=1, command="this")


def ignored(_: Any) -> None:
    """Nothing is made of it."""


# A training writes weights that name their origin, and resumes to the bit.


def test_weights_say_what_made_them(options: Options) -> None:
    lines: list[str] = []
    points: list[Any] = []
    policy, about = weights.read(train(options, lines.append, points.append))
    assert (about.objective, about.devices, about.settings) == ("time", 2, SMALL)
    assert (about.command, about.steps) == ("this", 9)
    assert [steps for steps, *_ in about.curve] == [p.steps for p in points] == [3, 6, 9]
    assert policy.choices == [2, 2, 2, 2, 2, 2]
    valid = options.data / "valid"
    assert lines == [f"skipped: {valid / 'a.json'}: twice", f"{valid}: 1 graph; skipped: 1 twice"]


def interrupt_after(calls: int) -> Callable[..., Any]:
    remaining = [calls]
    reward = module.Trainer.__dict__["_learn"]

    def learn(*arguments: Any) -> None:
        remaining[0] -= 1
        if remaining[0] < 0:
            raise KeyboardInterrupt
        reward(*arguments)

    return learn


@pytest.mark.parametrize("calls", [0, 1, 3, 4, 8])
def test_an_interrupted_training_goes_on_to_the_same_weights(
    calls: int, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(replace(options, out=options.out / "whole"), ignored, ignored).read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(module.Trainer, "_learn", interrupt_after(calls))
        with pytest.raises(KeyboardInterrupt):
            train(options, ignored, ignored)
    assert train(options, ignored, ignored).read_bytes() == whole


@pytest.mark.parametrize(
    "changed",
    [{"parameters": np.zeros(3, np.float32)}, {"mean": None}, {"best": np.zeros((2, 2))}],
    ids=["parameters", "mean", "best"],
)
def test_a_checkpoint_of_other_arrays_is_named_with_the_remedy(
    changed: dict[str, Any], options: Options
) -> None:
    whole = train(options, ignored, ignored).read_bytes()
    path = options.out / CHECKPOINT
    with np.load(path) as file:
        arrays = {**file, **changed}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    before = path.read_bytes()
    with pytest.raises(
        ReadError, match=r"checkpoint\.npz: is no checkpoint, or damaged: remove it"
    ):
        train(replace(options, steps=12), ignored, ignored)
    assert path.read_bytes() == before
    path.unlink()
    assert train(options, ignored, ignored).read_bytes() == whole


def test_a_full_disk_leaves_the_last_checkpoint(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(replace(options, out=options.out / "whole"), ignored, ignored).read_bytes()
    train(replace(options, steps=3), ignored, ignored)
    before = (options.out / CHECKPOINT).read_bytes()

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        with pytest.raises(SituateError, match=r"cannot write .*checkpoint\.npz.*: No space left"):
            train(options, ignored, ignored)
    assert (options.out / CHECKPOINT).read_bytes() == before
    assert [path.name for path in options.out.iterdir() if path.name.startswith(".")] == []
    assert train(options, ignored, ignored).read_bytes() == whole


# A folder belongs to one training.


@pytest.mark.parametrize(
    ("changes", "others"),
    [
        ({"seed": 1, "copies": 2}, "copies, seed"),
        ({"machine": replace(TIME, rules="situate")}, "rules"),
        ({"settings": replace(SMALL, samples=2)}, "settings"),
    ],
)
def test_a_folder_of_another_training_is_refused(
    changes: dict[str, Any], others: str, options: Options
) -> None:
    train(options, ignored, ignored)
    with pytest.raises(SituateError, match=f"belongs to another training, of other {others}: give"):
        train(replace(options, **changes), ignored, ignored)


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        ({"rules": "dnn-partitioning"}, "BRKGA knows no schedules in which .*: use auto, or other"),
        ({"objective": "throughput"}, "BRKGA makes the time or the memory of a step small"),
        ({"cluster": Cluster.identical(65)}, "has 65 devices, and weights are for 64 at most"),
    ],
)
def test_what_no_plan_could_be_made_with_is_not_trained(
    machine: dict[str, Any], message: str, options: Options
) -> None:
    options = replace(options, machine=replace(TIME, **machine), settings=SMALL)
    with pytest.raises(SituateError, match=message):
        train(options, ignored, ignored)
    assert not options.out.exists()


def test_validation_has_evaluations_of_its_own(options: Options) -> None:
    of = replace(SMALL, validation_evaluations=400)
    learnt, validation = module._instances(options, of, *module._data(options, ignored))
    assert validation is not None
    assert (learnt.settings.evaluations, validation.settings.evaluations) == (120, 400)


def test_a_training_that_is_done_is_not_run_again(options: Options) -> None:
    first = train(options, ignored, ignored).read_bytes()
    points: list[Any] = []
    assert train(options, ignored, points.append).read_bytes() == first
    assert points == []


def test_a_folder_of_graphs_alone_has_no_validation(options: Options) -> None:
    alone = replace(options, data=options.data / "train", out=options.out / "alone")
    _, about = weights.read(train(alone, ignored, ignored))
    assert [validation for *_, validation in about.curve] == [None] * 3


def test_an_out_that_is_a_file_is_named(options: Options) -> None:
    options.out.write_text("mine")
    with pytest.raises(SituateError, match="cannot be made"):
        train(options, ignored, ignored)
    assert options.out.read_text() == "mine"


# Options change the training, and so its identity.


def test_settings_of_ones_own_are_taken(options: Options) -> None:
    own = replace(SMALL, samples=2)
    _, about = weights.read(train(replace(options, settings=own), ignored, ignored))
    assert about.settings == own


def test_points_may_be_closer_together_in_another_training(options: Options) -> None:
    _, about = weights.read(train(replace(options, every=2), ignored, ignored))
    assert [steps for steps, *_ in about.curve] == [2, 4, 6, 8, 9]
    with pytest.raises(SituateError, match="belongs to another training"):
        train(options, ignored, ignored)


def test_points_as_close_as_they_are_anyway_are_no_other_training(options: Options) -> None:
    path = train(options, ignored, ignored)
    assert train(replace(options, every=module.POINT_STEPS), ignored, ignored) == path


@pytest.mark.parametrize("change", ["added", "removed", "another"])
def test_other_graphs_for_validation_are_another_training(options: Options, change: str) -> None:
    valid = options.data / "valid"
    if change == "added":
        shutil.move(valid, options.data / "kept")
    train(options, ignored, ignored)
    if change == "added":
        shutil.move(options.data / "kept", valid)
    elif change == "removed":
        shutil.rmtree(valid)
    else:
        filled(valid, other=graph("other", 6))
    with pytest.raises(SituateError, match="belongs to another training, of other validation"):
        train(options, ignored, ignored)


def test_settings_are_of_an_objective() -> None:
    assert settings_of("paper", "memory") is SETTINGS["paper", "memory"]
    with pytest.raises(SituateError, match="none of name 'paper_synthetic' for memory; there are"):
        settings_of("paper_synthetic", "memory")
