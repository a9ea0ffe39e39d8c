"""Pictures of a benchmark."""

from __future__ import annotations

import numpy as np
import pytest

from situate.bench.best_known import BestKnown
from situate.bench.pictures import draw_gaps, draw_profiles, gaps_over_time, profiles
from situate.bench.tables import row_gaps
from tests.bench.small import entry, row

BEST = BestKnown([entry(best=10)])


# Performance profiles, and gaps over time.
def test_a_profile_rises_by_every_run_that_fits():
    rows = row_gaps([row(value=12), row(value=10), row(value=None), row(value=11)], BEST)
    gaps, share = profiles(rows)["heft"]
    assert gaps == pytest.approx([0, 0.1, 0.2])
    assert share == pytest.approx([0.25, 0.5, 0.75])


def test_a_method_without_a_plan_that_fits_has_an_empty_profile():
    gaps, share = profiles(row_gaps([row(value=None)], BEST))["heft"]
    assert len(gaps) == len(share) == 0


def test_the_gap_over_time_falls_with_each_improvement():
    of = row(value=11, history=[(0.01, 15.0), (0.05, 11.0)])
    at, gaps = gaps_over_time(row_gaps([of], BEST))["heft"]
    assert np.isinf(gaps[at < 0.01]).all()
    assert gaps[(at >= 0.01) & (at < 0.05)] == pytest.approx(0.5)
    assert gaps[at >= 0.05] == pytest.approx(0.1)


def test_only_the_longest_runs_count_over_time():
    short = row(value=20, history=[(0.01, 20.0)])
    long = row(value=10, history=[(0.01, 10.0)], time_limit=1.0)
    at, gaps = gaps_over_time(row_gaps([short, long], BEST))["heft"]
    assert at[-1] == pytest.approx(1.0)
    assert gaps[-1] == 0


def test_the_median_is_infinite_while_half_of_the_runs_have_no_plan():
    fits = row(value=10, history=[(0.01, 10.0)])
    _, gaps = gaps_over_time(row_gaps([fits, row(value=None)], BEST))["heft"]
    assert np.isinf(gaps).all()
    _, gaps = gaps_over_time(row_gaps([fits, fits, row(value=None)], BEST))["heft"]
    assert gaps[-1] == 0


ROWS = row_gaps(
    [
        row(method, value, time_limit=limit, history=[(0.01, value)] if value else [])
        for limit in (0.1, 1.0)
        for method, value in (("auto", 10.0), ("heft", 12.0), ("etf", None))
    ],
    BEST,
)


@pytest.fixture
def picture(tmp_path):
    """The path of a picture, where matplotlib draws."""
    pytest.importorskip("matplotlib")
    return tmp_path / "picture.svg"


@pytest.mark.parametrize("draw", [draw_profiles, draw_gaps])
def test_a_picture_is_drawn_and_names_every_method(draw, picture):
    draw(ROWS, picture)
    text = picture.read_text()
    assert text.startswith("<?xml")
    assert all(f"<!-- {method} -->" in text for method in ("auto", "heft", "etf"))


def test_profiles_have_a_panel_for_each_time_limit(picture):
    draw_profiles(ROWS, picture)
    text = picture.read_text()
    assert "<!-- 0.1 s -->" in text
    assert "<!-- 1 s -->" in text


def test_gaps_have_a_panel_for_each_family(picture):
    other = row_gaps([row("auto", 10, family="other")], BEST)
    draw_gaps([*ROWS, *other], picture)
    text = picture.read_text()
    assert "<!-- small -->" in text
    assert "<!-- other -->" in text


def test_a_hostile_family_is_only_text(picture):
    hostile = row_gaps([row(family="$x$</svg>\x1b", method="<b>$y$")], BEST)
    draw_gaps(hostile, picture)
    draw_profiles(hostile, picture.with_name("other.svg"))
    assert picture.read_text().count("</svg>") == 1
