"""Formats of pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

from situate.errors import SituateError
from situate.report.pictures.formats import format_of


def test_the_suffix_says_the_format() -> None:
    assert format_of("a.b/c.SVG") == "svg"
    assert format_of(Path("c.png")) == "png"


@pytest.mark.parametrize("name", ["c", "c.", "svg", "c.svg.pdf", ""])
def test_another_suffix_is_an_error(name: str) -> None:
    with pytest.raises(SituateError, match=r"^curves '.*': its name must end in \.svg or \.png$"):
        format_of(name, "curves")
