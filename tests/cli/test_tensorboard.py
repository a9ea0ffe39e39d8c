"""TensorBoard while a method learns."""

from __future__ import annotations

import numpy as np
import pytest

from situate.cli.tensorboard import tensorboard
from situate.errors import SituateError
from situate.evaluators.measurements import Measurements
from situate.writers.tensorboard import Scalars
from tests.writers.test_tensorboard import read

pytest.importorskip("tensorboard")

MEASURED = Measurements(np.array([4.0, np.inf, 2.0]), np.array([0, 1, 0], np.uint8))
FAILED = Measurements(np.array([np.inf]), np.array([1], np.uint8))


def test_every_batch_has_its_mean_the_best_and_its_failures(tmp_path):
    with tensorboard(tmp_path / "post") as found:
        found.measured(0, MEASURED, {})
        found.measured(3, FAILED, {"workers/busy": 2.0})
    assert found.complete
    assert read(tmp_path / "post") == {
        "seconds/batch_mean": [(3, 3.0)],
        "seconds/best": [(3, 2.0), (4, 2.0)],
        "failures/batch_share": [(3, pytest.approx(1 / 3)), (4, 1.0)],
        "workers/busy": [(4, 2.0)],
    }


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with tensorboard(None) as found:
        found.measured(0, MEASURED, {})
    assert found.complete
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_does_not_end_the_search(tmp_path, monkeypatch, capsys):
    def full(*_):
        raise SituateError("cannot write 'tb': No space left on device")

    monkeypatch.setattr(Scalars, "write", full)
    with tensorboard(tmp_path) as found:
        found.measured(0, MEASURED, {})
        found.measured(3, MEASURED, {})
    assert not found.complete
    said = (
        "error: cannot write 'tb': No space left on device; TensorBoard gets no more of this search"
    )
    assert capsys.readouterr().err == f"{said}\n"


def test_what_cannot_be_written_in_the_end_is_said_too(tmp_path, monkeypatch, capsys):
    def full(_):
        raise SituateError("cannot write 'tb': Input/output error")

    with tensorboard(tmp_path) as found:
        monkeypatch.setattr(Scalars, "close", full)
    assert not found.complete
    assert capsys.readouterr().err.startswith("error: cannot write 'tb': Input/output error")
