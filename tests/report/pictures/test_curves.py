"""Learning curves as a picture."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from situate.errors import MissingExtra, SituateError
from situate.report.learning_curve import Curve
from situate.report.pictures.curves import MAX_POINTS, draw, draw_failures, draw_times, render
from tests.report.handmade import HOSTILE

# The lines of a picture of learning.
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


pytest.importorskip("matplotlib")


def learning_curve_of(name: str = "post", samples: int = 100, failures: int = 0) -> Curve:
    seconds = 1 + 1 / np.arange(1, samples + 1)
    seconds[:failures] = np.inf
    return Curve.of_samples(name, seconds)


def svg(curves: list[Curve], levels: dict[str, float] | None = None, **options: str) -> str:
    image = render(curves, levels or {}, "svg", **options)
    ElementTree.fromstring(image)
    return image.decode()


def test_svg_and_png_go_by_the_suffix(tmp_path):
    for name, magic in (("curves.svg", b"<?xml"), ("curves.PNG", b"\x89PNG")):
        draw([learning_curve_of()], {"single": 1.5}, tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(magic)


def test_another_suffix_is_an_error_that_names_those_there_are(tmp_path):
    with pytest.raises(SituateError, match=r"must end in \.svg or \.png"):
        draw([learning_curve_of()], {}, tmp_path / "curves.txt")


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"situate\[report\]"):
        render([learning_curve_of()], {}, "svg")


def test_every_method_and_level_is_in_the_legend_with_its_time():
    text = svg(
        [learning_curve_of("post"), learning_curve_of("ppo")], {"single": 1.5, "lower bound": 0.8}
    )
    for label in ("post  1.01 s", "ppo  1.01 s", "single  1.50 s", "lower bound  800 ms"):
        assert f"<!-- {label} -->" in text


def test_failures_have_axes_of_their_own_if_there_are_any():
    assert "failed [%]" in svg([learning_curve_of(failures=5)])
    assert "failed [%]" not in svg([learning_curve_of()])


def test_a_method_of_which_nothing_ran_says_so():
    assert "<!-- post  none ran -->" in svg([learning_curve_of(failures=100)], {"single": 1.0})


def test_a_graph_without_a_unit_of_time_has_none_here():
    text = svg([learning_curve_of()], unit="")
    assert "in the graph's own unit" in text
    assert "[s]" not in text


def test_hostile_names_draw_as_they_are():
    text = svg(
        [learning_curve_of(name) for name in HOSTILE], {HOSTILE[0]: 1.0}, title="".join(HOSTILE)
    )
    assert "<script" not in text
    assert "\x1b" not in text


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seconds", [[0.0], [1e-300, 1e300], [5e-324, 1.0], [np.inf], []])
def test_any_times_can_be_drawn(seconds):
    svg([Curve.of_samples("post", np.array(seconds, np.float64))], {"single": 1.0})


def test_nothing_to_draw_is_an_empty_picture():
    svg([])


def test_the_same_curves_draw_the_same_pixels():
    images = [render([learning_curve_of(failures=3)], {"single": 1.0}, "png") for _ in range(2)]
    assert images[0] == images[1]


def test_a_million_samples_stay_a_small_picture():
    curve = Curve("post", np.linspace(2, 1, 10**6), np.linspace(3, 1, 10**6), np.zeros(10**6))
    assert len(render([curve], {}, "svg")) < 500_000


def test_no_global_state_of_matplotlib_changes():
    import matplotlib

    before = dict(matplotlib.rcParams)
    svg([learning_curve_of()])
    assert dict(matplotlib.rcParams) == before
