"""The formats of pictures, and texts shortened to a width in them."""

from __future__ import annotations

import io
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from situate.errors import SituateError
from situate.report.text import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FORMATS = ("svg", "png")


def format_of(path: str | Path, content: str = "picture") -> str:
    """Which of `FORMATS` the suffix of `path` says.

    Raises:
        SituateError: none of them.
    """
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in FORMATS:
        names = " or ".join(f".{name}" for name in FORMATS)
        raise SituateError(f"{content} {str(path)!r}: its name must end in {names}")
    return form


def image(figure: Figure, form: str, dots: int) -> bytes:
    """The figure as a file of the format; a `png` has `dots` per inch."""
    stream = io.BytesIO()
    # Without dates and versions, equal plans give equal files.
    metadata = {"Date": None} if form == "svg" else {"Software": "situate"}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(stream, format=form, dpi=dots, metadata=metadata)
    return compact_svg(stream.getvalue()) if form == "svg" else stream.getvalue()


def compact_svg(picture: bytes) -> bytes:
    """An SVG file of matplotlib in half the bytes: paths to a hundredth of a point, one line each,
    without metadata and indentation."""
    picture = re.sub(rb"<metadata>.*?</metadata>", b"", picture, flags=re.DOTALL)
    picture = re.sub(rb' d="[^"]*"', lambda match: _compact_path(match[0]), picture)
    return re.sub(rb"\s*\n\s*", b"\n", picture)


def _compact_path(path: bytes) -> bytes:
    path = re.sub(rb"(\.\d\d)\d+", rb"\1", path)
    return re.sub(rb"\s*([A-Za-z])\s+(?=[-\d])", rb"\1", re.sub(rb"\s*\n", b" ", path))


# Widths of texts in pictures, and texts shortened to a width.
def width_of(text: str, size: float, weight: str = "normal") -> float:
    """The width of a text in points, in letters of `size` points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        properties = FontProperties(size=size, weight=weight)
        width, _, _ = text_to_path.get_text_width_height_descent(text, properties, ismath=False)
    return max(float(width), 1.0)


def fitting(name: str, most: int, size: float, room: float, weight: str = "normal") -> str:
    """`name` as `printable` shows it, of at most `most` characters, and within `room` points."""
    text = printable(name, most)
    while (width := width_of(text, size, weight)) > room and most > 3:
        most = max(3, min(most - 1, int(min(most, len(text)) * room / width)))
        text = printable(name, most)
    return text
