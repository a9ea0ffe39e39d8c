"""The progress of a search: its line on a terminal, and TensorBoard logs."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from situate.cli.progress import SPARKLINE_WIDTH, SearchProgress, sparkline, tensorboard
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.evaluators.measurements import Measurements
from situate.results.result import Asynchrony, Progress, WorkerProgress
from situate.writers.tensorboard import Scalars
from tests.cli.conftest import diamond
from tests.writers.test_tensorboard import read

PROBLEM = Problem(diamond(), Cluster.identical(2))


def batch(*seconds: float) -> Measurements:
    times = np.array(seconds)
    return Measurements(times, np.where(np.isfinite(times), 0, 1).astype(np.uint8))


def progress(evaluations: int, value: float, feasible: bool = True) -> Progress:
    return Progress(7.0, evaluations, value, feasible, 3.0)


# The line on a terminal.
def test_a_method_that_learns_says_samples_best_mean_and_failures():
    followed = SearchProgress(PROBLEM, "post", 1200)
    followed.record(0, batch(8.0, np.inf))
    followed.record(2, batch(4.0, 6.0))
    line = followed.update(progress(4, 4.0))
    assert line.startswith("post: 4 of 1,200 samples, best 4.00 s, bound 3.00 s, mean of the last ")
    assert "last 60 6.00 s █▁, 1 failed, 7 s; Ctrl-C" in line


def test_before_any_step_ran_there_is_no_mean():
    followed = SearchProgress(PROBLEM, "post", 12)
    followed.record(0, batch(np.inf, np.inf))
    line = followed.update(progress(2, 9.0, feasible=False))
    assert "best never, mean" in line
    assert "·, 2 failed" in line


def test_the_age_of_gradients_is_part_of_the_line():
    followed = SearchProgress(PROBLEM, "colocrl", 9)
    line = followed.update(replace(progress(4, 4.0), asynchrony=Asynchrony(9.0, {0: 1, 3: 3})))
    assert ", gradients 2.2 updates old, 7 s; Ctrl-C" in line
    assert followed.figures == {"controllers/staleness": 2.25}


def test_workers_are_part_of_the_line():
    followed = SearchProgress(PROBLEM, "post", 12)
    line = followed.update(replace(progress(4, 4.0), workers=WorkerProgress(4, 3, 70, 0)))
    assert ", 3 of 4 workers busy, 10 samples/s, 7 s; Ctrl-C" in line
    line = followed.update(replace(progress(4, 4.0), workers=WorkerProgress(1, 1, 7, 2)))
    assert ", 1 of 1 worker busy (2 failures), 1 samples/s, 7 s" in line


def test_other_methods_say_evaluations():
    line = SearchProgress(PROBLEM, "auto").update(progress(1000, 5.0, feasible=False))
    assert line.startswith("auto: best 5.00 s, does not fit yet, 1,000 evaluations")
    line = SearchProgress(PROBLEM, "auto").update(progress(1000, 5.0))
    assert line.startswith("auto: best 5.00 s, bound 3.00 s, 1,000 evaluations")


# Learning curves.
def test_the_curve_of_a_method_that_learns_holds_every_sample():
    followed = SearchProgress(PROBLEM, "post", 3)
    followed.record(0, batch(3.0, np.inf))
    followed.record(2, batch(1.0))
    assert followed.curve().best.tolist() == [3.0, 3.0, 1.0]
    assert followed.curve().mean.tolist() == [3.0, 3.0, 2.0]


def test_the_curve_of_another_holds_its_improvements_but_no_plan_that_does_not_fit():
    followed = SearchProgress(PROBLEM, "random")
    for step in (progress(1, 1.0, False), progress(2, 5.0), progress(3, 5.0), progress(4, 4.0)):
        followed.update(step)
    assert followed.curve().best.tolist() == [np.inf, 5.0, 5.0, 4.0]


# Sparklines.
@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([], ""),
        ([2.0], "▁"),
        ([1.0, 1.0], "▁▁"),
        ([0.0, 7.0, 3.0], "▁█▄"),
        ([np.nan, 1.0, 2.0], "·▁█"),
        ([np.nan], "·"),
    ],
)
def test_a_sparkline_goes_from_the_lowest_to_the_highest(values, line):
    assert sparkline(values) == line


def test_a_sparkline_of_many_values_keeps_the_first_and_the_last():
    line = sparkline([*range(1000, 0, -1)])
    assert len(line) == SPARKLINE_WIDTH
    assert (line[0], line[-1]) == ("█", "▁")


# TensorBoard logs hold every batch, and a search goes on if they fail.
with_tensorboard = pytest.mark.skipif(
    find_spec("tensorboard") is None, reason="TensorBoard is not installed"
)
BATCH = Measurements(np.array([4.0, np.inf, 2.0]), np.array([0, 1, 0], np.uint8))
FAILURES = Measurements(np.array([np.inf]), np.array([1], np.uint8))


@with_tensorboard
def test_every_batch_has_its_mean_the_best_and_its_failures(tmp_path):
    with tensorboard(tmp_path / "post") as logs:
        logs.record(0, BATCH, {})
        logs.record(3, FAILURES, {"workers/busy": 2.0})
    assert logs.complete
    assert read(tmp_path / "post") == {
        "seconds/batch_mean": [(3, 3.0)],
        "seconds/best": [(3, 2.0), (4, 2.0)],
        "failures/batch_share": [(3, pytest.approx(1 / 3)), (4, 1.0)],
        "workers/busy": [(4, 2.0)],
    }


@with_tensorboard
def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with tensorboard(None) as logs:
        logs.record(0, BATCH, {})
    assert logs.complete
    assert list(tmp_path.iterdir()) == []


@with_tensorboard
def test_a_disk_that_fills_up_does_not_end_the_search(tmp_path, monkeypatch, capsys):
    def full(*_):
        raise SituateError("cannot write 'tb': No space left on device")

    monkeypatch.setattr(Scalars, "write", full)
    with tensorboard(tmp_path) as logs:
        logs.record(0, BATCH, {})
        logs.record(3, BATCH, {})
    assert not logs.complete
    line = (
        "error: cannot write 'tb': No space left on device; TensorBoard gets no more of this search"
    )
    assert capsys.readouterr().err == f"{line}\n"


@with_tensorboard
def test_what_cannot_be_written_in_the_end_is_said_too(tmp_path, monkeypatch, capsys):
    def full(_):
        raise SituateError("cannot write 'tb': Input/output error")

    with tensorboard(tmp_path) as logs:
        monkeypatch.setattr(Scalars, "close", full)
    assert not logs.complete
    assert capsys.readouterr().err.startswith("error: cannot write 'tb': Input/output error")
