"""Widths of texts in pictures, and texts shortened to a width."""

from __future__ import annotations

import warnings

from situate.report.text import printable


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
