"""The lines of a picture of learning."""

from __future__ import annotations

import numpy as np
import pytest

from situate.report.learning_curve import Curve
from situate.report.pictures.curve_lines import MAX_POINTS, draw_failures, draw_times

figure = pytest.importorskip("matplotlib.figure")


@pytest.fixture
def axes():
    return figure.Figure().add_subplot()


def test_each_method_has_one_colour_and_the_best_is_the_thicker_line(axes):
    curves = [Curve.of_samples(name, np.array([3.0, 1.0, 2.0])) for name in ("post", "ppo")]
    draw_times(axes, curves, {}, "s")
    mean, best, other, _ = axes.get_lines()
    assert mean.get_color() == best.get_color() != other.get_color()
    assert best.get_linewidth() > mean.get_linewidth()
    assert best.get_ydata().tolist() == [3.0, 1.0, 1.0]
    assert mean.get_ydata().tolist() == [3.0, 2.0, 2.0]
    assert best.get_xdata().tolist() == [1, 2, 3]


def test_a_failure_is_a_gap_not_a_time(axes):
    draw_times(axes, [Curve.of_samples("post", np.array([np.inf, 2.0]))], {}, "s")
    assert np.isnan(axes.get_lines()[1].get_ydata()[0])


def test_a_thinned_line_keeps_its_end(axes):
    seconds = np.linspace(2, 1, 3 * MAX_POINTS + 1)
    draw_times(axes, [Curve.of_samples("post", seconds)], {}, "s")
    best = axes.get_lines()[1]
    assert len(best.get_xdata()) <= MAX_POINTS
    assert best.get_xdata()[-1] == len(seconds)
    assert best.get_ydata()[-1] == 1.0


@pytest.mark.parametrize(("highest", "scale"), [(1.5, "linear"), (5.0, "log"), (1e6, "log")])
def test_every_time_is_within_the_axes(axes, highest, scale):
    draw_times(axes, [Curve.of_samples("post", np.array([highest, 1.0]))], {"single": 0.9}, "s")
    low, high = axes.get_ylim()
    assert low < 0.9
    assert high > highest
    assert axes.get_yscale() == scale
    assert len([tick for tick in axes.get_yticks() if low <= tick <= high]) > 1


def test_the_legend_lists_the_best_at_the_bottom(axes):
    curves = [Curve.of_samples("slow", np.array([3.0])), Curve.of_samples("fast", np.array([1.0]))]
    draw_times(axes, curves, {"single": 2.0}, "s")
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts == ["slow  3.00 s", "single  2.00 s", "fast  1.00 s"]


def test_failures_are_shares_of_a_hundred(axes):
    draw_failures(axes, [Curve.of_samples("post", np.array([np.inf, 1.0]))])
    assert axes.get_lines()[0].get_ydata().tolist() == [100.0, 50.0]
    assert axes.get_ylim() == (0, 100)
