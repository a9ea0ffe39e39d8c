"""JSON whose strings are safe inside a script element of a web page too."""

from __future__ import annotations

import msgspec


def json_bytes(value: object) -> bytes:
    """Indented JSON of `value`, ending in a line feed; `</` is written `<\\/`."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=1)
    return text.replace(b"</", rb"<\/") + b"\n"
