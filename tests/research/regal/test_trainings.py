"""Curves of trainings, and the test whether one is flat."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

pytest.importorskip("torch")

from benchmarks.lib.record import read_record
from research.regal import tables, trainings
from situate.solvers.evolutionary.regal import weights
from situate.solvers.evolutionary.regal.settings import SETTINGS
from tests.solvers.evolutionary.regal.test_weights import about, policy

# A curve is flat if the second half of its last third gains no more than the interval.


def test_a_rising_curve_gains() -> None:
    gain, half = trainings.rise(np.linspace(0.0, 6.0, 60))
    assert gain is not None
    assert half is not None
    assert gain == pytest.approx(6 * 10 / 59)
    assert gain > half


def test_noise_alone_does_not_gain() -> None:
    noise = np.random.default_rng(0).normal(size=(200, 300))
    flat = [gain <= half for gain, half in map(trainings.rise, noise)]  # type: ignore[operator]
    assert 0.95 < np.mean(flat) < 1.0


def test_only_the_last_third_counts() -> None:
    assert trainings.rise(np.r_[np.linspace(0, 5, 40), np.full(20, 5.0)]) == (0.0, 0.0)


def test_a_short_curve_is_not_tested() -> None:
    assert trainings.rise(np.zeros(11)) == (None, None)


# The record has every weights file of the folder, and the page a line for each.


def test_each_file_has_a_row_and_its_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = about(SETTINGS["paper", "time"], objective="time", devices=2)
    curve = [(500 * i, -1.0, -1.0 + i / 1000) for i in range(1, 25)]
    for name, points in (("long", curve), ("short", curve[:3])):
        text = structs.replace(of, curve=points, steps=points[-1][0])
        weights.write(tmp_path / f"{name}.safetensors", policy(text), text)
    monkeypatch.setattr(trainings, "RESULTS", tmp_path)
    trainings.main([str(tmp_path)])
    content = read_record(tmp_path / "regal_trainings.json")
    long, short = content["tables"]["trainings"]
    assert (long["weights"], long["kept"], long["best_%"]) == ("long", 12_000, 2.4)
    assert (long["flat"], short["flat"], short["gain_%"]) == (False, False, None)
    assert len(content["tables"]["curves"]) == 27
    first, second = tables.trainings(content).splitlines()[2:]
    assert first.startswith("| `long` | 12,000 of 100,000 | 2.40 | 12,000 | 0.40 ± ")
    assert second.endswith("| – | no |")
