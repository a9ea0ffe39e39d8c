"""The reverse of `block.encoded`, and the data of a page."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode
from typing import Any

import numpy as np

DATA = re.compile(rb'<script id="data" type="application/octet-stream">([A-Za-z0-9+/=]+)</script>')
"""The data block of a page."""


def decoded(text: str | bytes) -> Any:
    """The content of an encoded block, with lists in place of `Texts`."""
    data = zlib.decompress(b64decode(text))
    length = int.from_bytes(data[:4], "little")
    base = -(-(4 + length) // 8) * 8
    return _revived(json.loads(data[4 : 4 + length]), data[base:])


def page_data(page: bytes) -> Any:
    """The content of a page's data block."""
    (block,) = DATA.findall(page)
    return decoded(block)


def _revived(value: Any, data: bytes) -> Any:
    if isinstance(value, list):
        return [_revived(item, data) for item in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return _array(data, *value["array"])
    if "in" in value:
        text = _array(data, *value["in"]["array"]).tobytes().decode()
        return text.split("\n") if value["texts"] else []
    return {key: _revived(item, data) for key, item in value.items()}


def _array(data: bytes, kind: str, offset: int, count: int) -> np.ndarray:
    size = np.dtype(kind).itemsize
    content = data[offset : offset + size * count]
    if kind != "f8":
        return np.frombuffer(content, f"<{kind}")
    planes = np.frombuffer(content, np.uint8).reshape(8, count)
    return np.ascontiguousarray(planes.T).view("<f8").ravel()
