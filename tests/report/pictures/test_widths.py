from __future__ import annotations

import pytest

from situate.report.pictures.widths import fitting, width_of
from tests.report.handmade import HOSTILE


def test_wide_letters_are_wider() -> None:
    assert width_of("WWW", 9) > 2 * width_of("iii", 9)
    assert width_of("layer", 9, "bold") > width_of("layer", 9)


@pytest.mark.parametrize("name", ["layer", "W" * 200, "i" * 200, *HOSTILE])
def test_a_text_is_as_long_as_there_is_room(name: str) -> None:
    text = fitting(name, 40, 8, 100)
    assert width_of(text, 8) <= 100
    assert len(fitting(name, 40, 8, 1e6)) >= len(text)


def test_what_fits_stays_whole() -> None:
    assert fitting("model.layers.0", 40, 8, 200) == "model.layers.0"


def test_no_room_at_all_leaves_the_two_ends() -> None:
    assert fitting("W" * 200, 40, 8, 0) == "W…W"
