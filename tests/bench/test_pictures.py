"""Pictures of a benchmark."""

from __future__ import annotations

import pytest

from situate.bench.best_known import BestKnown
from situate.bench.pictures import draw_gaps, draw_profiles
from situate.bench.summary import row_gaps
from tests.bench.small import entry, row

pytest.importorskip("matplotlib")

KNOWN = BestKnown([entry(best=10)])
ROWS = row_gaps(
    [
        row(method, value, time_limit=limit, history=[(0.01, value)] if value else [])
        for limit in (0.1, 1.0)
        for method, value in (("auto", 10.0), ("heft", 12.0), ("etf", None))
    ],
    KNOWN,
)


@pytest.mark.parametrize("draw", [draw_profiles, draw_gaps])
def test_a_picture_is_drawn_and_names_every_method(draw, tmp_path):
    draw(ROWS, tmp_path / "picture.svg")
    text = (tmp_path / "picture.svg").read_text()
    assert text.startswith("<?xml")
    assert all(f"<!-- {method} -->" in text for method in ("auto", "heft", "etf"))


def test_profiles_have_a_panel_for_each_time_limit(tmp_path):
    draw_profiles(ROWS, tmp_path / "picture.svg")
    text = (tmp_path / "picture.svg").read_text()
    assert "<!-- 0.1 s -->" in text
    assert "<!-- 1 s -->" in text


def test_gaps_have_a_panel_for_each_family(tmp_path):
    other = row_gaps([row("auto", 10, family="other")], KNOWN)
    draw_gaps([*ROWS, *other], tmp_path / "picture.svg")
    text = (tmp_path / "picture.svg").read_text()
    assert "<!-- small -->" in text
    assert "<!-- other -->" in text


def test_a_hostile_family_is_only_text(tmp_path):
    hostile = row_gaps([row(family="$x$</svg>\x1b", method="<b>$y$")], KNOWN)
    draw_gaps(hostile, tmp_path / "picture.svg")
    draw_profiles(hostile, tmp_path / "other.svg")
    assert (tmp_path / "picture.svg").read_text().count("</svg>") == 1
