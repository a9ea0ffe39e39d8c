"""Learning curves in numbers."""

from __future__ import annotations

import numpy as np
import pytest

from situate.report.learning_curve import WINDOW, Curve, learning_figures

INF = np.inf


def test_the_best_never_gets_worse_and_a_failure_is_no_best():
    curve = Curve.of_samples("post", np.array([INF, 3.0, 5.0, 2.0, INF]))
    assert curve.best.tolist() == [INF, 3.0, 3.0, 2.0, 2.0]


def test_the_mean_is_of_those_that_ran():
    curve = Curve.of_samples("post", np.array([INF, 4.0, INF, 2.0]))
    assert np.isnan(curve.mean[0])
    assert curve.mean[1:].tolist() == [4.0, 4.0, 3.0]
    assert curve.failed.tolist() == pytest.approx([1.0, 0.5, 2 / 3, 0.5])


def test_what_is_older_than_the_window_is_forgotten():
    seconds = np.concatenate((np.full(WINDOW, 9.0), np.full(WINDOW, 1.0)))
    curve = Curve.of_samples("post", seconds)
    assert curve.mean[WINDOW - 1] == 9.0
    assert curve.mean[-1] == 1.0


def test_one_endless_step_does_not_spoil_the_means_after_it():
    seconds = np.concatenate(([1e300], np.full(WINDOW, 1.0)))
    assert Curve.of_samples("post", seconds).mean[-1] == 1.0


def test_improvements_hold_until_the_next():
    curve = Curve.of_improvements("random", 5, [(2, 3.0), (4, 1.0)])
    assert curve.best.tolist() == [INF, 3.0, 3.0, 1.0, 1.0]
    assert curve.mean.size == 0


def test_a_method_without_samples_has_an_empty_curve():
    assert Curve.of_samples("post", np.empty(0)).best.size == 0


def test_figures_count_failures_and_compare_the_end_with_the_beginning():
    seconds = np.concatenate(([INF, 5.0], np.full(WINDOW, 4.0), np.full(WINDOW, 2.0), [INF]))
    assert learning_figures(seconds) == {
        "count": 2 * WINDOW + 3,
        "failures": 2,
        "best": 2.0,
        "first_60_best": 4.0,
        "last_60_mean": 2.0,
    }


def test_figures_of_failures_alone_have_no_times():
    figures = learning_figures(np.full(3, INF))
    assert (figures["count"], figures["failures"]) == (3, 3)
    assert figures["best"] is figures["first_60_best"] is figures["last_60_mean"] is None
