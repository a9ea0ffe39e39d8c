"""Lines on panels."""

from __future__ import annotations

import numpy as np
import pytest

from situate.errors import SituateError
from situate.report.pictures.line_chart import Panel, Scales, draw

pytest.importorskip("matplotlib")

LINE = np.array([1.0, 2.0]), np.array([0.0, 1.0])
SCALES = Scales("x", "y", (0, 2), (0, 1), lambda axes: None)


def test_panels_stand_three_a_row(tmp_path):
    sizes = []
    for count in (1, 3, 4):
        panels = [Panel(f"panel {i}", {"a": LINE}) for i in range(count)]
        draw(panels, SCALES, tmp_path / "picture.svg", "title", "about")
        text = (tmp_path / "picture.svg").read_text()
        sizes.append([float(s) for s in text.partition('viewBox="0 0 ')[2].split('"')[0].split()])
    one, three, four = sizes
    assert one[0] < three[0] == four[0]
    assert one[1] == three[1] < four[1]


def test_a_name_has_one_colour_on_all_panels(tmp_path):
    panels = [Panel("one", {"a": LINE, "b": LINE}), Panel("two", {"b": LINE})]
    draw(panels, SCALES, tmp_path / "picture.svg", "title", "about")
    text = (tmp_path / "picture.svg").read_text().lower()
    assert text.count("stroke: #ee7733") == 3  # on both panels and in the legend


def test_more_names_than_colours_have_dashes(tmp_path):
    panels = [Panel("many", {f"name {i}": LINE for i in range(12)})]
    draw(panels, SCALES, tmp_path / "picture.svg", "title", "about")
    assert "stroke-dasharray" in (tmp_path / "picture.svg").read_text()


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(SituateError, match=r"must end in .svg or .png"):
        draw([Panel("", {})], SCALES, tmp_path / "picture.gif", "", "")
