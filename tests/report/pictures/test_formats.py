"""Formats of pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

from situate.errors import SituateError
from situate.report.pictures.formats import compact_svg, fitting, format_of, width_of
from tests.report.handmade import HOSTILE


def test_the_suffix_says_the_format() -> None:
    assert format_of("a.b/c.SVG") == "svg"
    assert format_of(Path("c.png")) == "png"


@pytest.mark.parametrize("name", ["c", "c.", "svg", "c.svg.pdf", ""])
def test_another_suffix_is_an_error(name: str) -> None:
    with pytest.raises(SituateError, match=r"^curves '.*': its name must end in \.svg or \.png$"):
        format_of(name, "curves")


# A picture of thousands of ops is mostly paths: matplotlib writes six decimals and a line a point.


def test_an_svg_file_is_compact_and_draws_the_same():
    picture = b"""<svg>
 <metadata>
  <rdf/>
 </metadata>
 <path d="M 108.123456 266.4
L 838.8 -6.998
z
" style="fill: #fff"/>
</svg>
"""
    assert compact_svg(picture) == (
        b'<svg>\n<path d="M108.12 266.4L838.8 -6.99 z " style="fill: #fff"/>\n</svg>\n'
    )
    assert compact_svg(compact_svg(picture)) == compact_svg(picture)


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
