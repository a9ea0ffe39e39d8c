"""TensorBoard while a method learns."""

from __future__ import annotations

import numpy as np
import pytest

from situate.cli.board import board
from situate.errors import SituateError
from situate.evaluators.measurements import Measurements
from situate.writers.tensorboard import Scalars
from tests.writers.test_tensorboard import read

pytest.importorskip("tensorboard")

MEASURED = Measurements(np.array([4.0, np.inf, 2.0]), np.array([0, 1, 0], np.uint8))
FAILED = Measurements(np.array([np.inf]), np.array([1], np.uint8))


def test_every_batch_has_its_mean_the_best_and_its_failures(tmp_path):
    with board(tmp_path / "post") as write:
        write(0, MEASURED)
        write(3, FAILED)
    assert read(tmp_path / "post") == {
        "seconds/batch_mean": [(3, 3.0)],
        "seconds/best": [(3, 2.0), (4, 2.0)],
        "failures/batch_share": [(3, pytest.approx(1 / 3)), (4, 1.0)],
    }


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with board(None) as write:
        write(0, MEASURED)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_does_not_end_the_search(tmp_path, monkeypatch, capsys):
    def full(*_):
        raise SituateError("cannot write 'tb': No space left on device")

    monkeypatch.setattr(Scalars, "write", full)
    with board(tmp_path) as write:
        write(0, MEASURED)
        write(3, MEASURED)
    assert capsys.readouterr().err.count("No space left on device; TensorBoard gets no more") == 1
