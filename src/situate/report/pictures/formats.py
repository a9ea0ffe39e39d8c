"""The formats of pictures, recognised by the suffixes of file names."""

from __future__ import annotations

import io
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
    return stream.getvalue()
