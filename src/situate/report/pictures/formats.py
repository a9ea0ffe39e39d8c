"""The formats of pictures, recognised by the suffixes of file names."""

from __future__ import annotations

import io
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from situate.errors import SituateError

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
