"""The formats of pictures, which are told from the names of their files."""

from __future__ import annotations

from pathlib import Path

from situate.errors import SituateError

FORMATS = ("svg", "png")


def format_of(path: str | Path, what: str = "picture") -> str:
    """Which of `FORMATS` the suffix of `path` says.

    Raises:
        SituateError: none of them.
    """
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in FORMATS:
        names = " or ".join(f".{name}" for name in FORMATS)
        raise SituateError(f"{what} {str(path)!r}: its name must end in {names}")
    return form
