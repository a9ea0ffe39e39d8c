"""Data for a page: JSON with typed arrays beside it, deflated, in base64.

The block before compression is the length of the JSON as four bytes, the JSON, zeros up to a
multiple of eight bytes, and then the arrays, each at a multiple of eight bytes. In the JSON an
array is `{"array": [type, offset, count]}`, and a list of texts is `{"texts": count, "in": array}`.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from situate.report.text import printable

ALIGNMENT = 8
LEVEL = 6
"""Compression level of zlib; 9 saves 2 % and takes five times as long."""
TYPES = {"u1": np.uint8, "u2": np.uint16, "u4": np.uint32, "i4": np.int32, "f8": np.float64}

UNSIGNED = (np.uint8, np.uint16, np.uint32)


@dataclass(frozen=True)
class Texts:
    """A list of user-supplied texts. The page receives them on one line each, escaped."""

    lines: Sequence[str]


def encoded(content: Any) -> str:
    """The base64 text of `content`: dictionaries, lists, scalars, numpy arrays and `Texts`."""
    arrays: list[bytes] = []
    described = _described(content, arrays, 0)[0]
    header = msgspec.json.encode(described)
    start = len(header).to_bytes(4, "little") + header
    data = b"".join([_padded(start), *arrays])
    return b64encode(zlib.compress(data, LEVEL)).decode("ascii")


def smallest(values: NDArray[Any]) -> NDArray[Any]:
    """Non-negative integers in the narrowest type that holds them."""
    largest = int(values.max(initial=0))
    return values.astype(next(t for t in UNSIGNED if largest <= np.iinfo(t).max))


def _described(value: Any, arrays: list[bytes], offset: int) -> tuple[Any, int]:
    """The JSON of a value, whose arrays are appended to `arrays`; and the next offset."""
    if isinstance(value, dict):
        entries = {}
        for key, item in value.items():
            entries[key], offset = _described(item, arrays, offset)
        return entries, offset
    if isinstance(value, (list, tuple)):
        items = []
        for item in value:
            described, offset = _described(item, arrays, offset)
            items.append(described)
        return items, offset
    if isinstance(value, Texts):
        text = "\n".join(map(_one_line, value.lines)).encode()
        described, offset = _described(np.frombuffer(text, np.uint8), arrays, offset)
        return {"texts": len(value.lines), "in": described}, offset
    if isinstance(value, np.ndarray):
        value = _typed(value)
        data = _padded(_bytes(value))
        arrays.append(data)
        return {"array": [_type(value), offset, len(value)]}, offset + len(data)
    return _one_line(value) if isinstance(value, str) else value, offset


def _one_line(text: str) -> str:
    """`printable`, at once for the ordinary names that nearly all are."""
    return text if text.isprintable() else printable(text)


def _typed(values: NDArray[Any]) -> NDArray[Any]:
    """The array in one of `TYPES`."""
    if values.dtype.kind == "f":
        return values.astype(np.float64)
    if values.dtype in TYPES.values():
        return values
    return smallest(values) if values.min(initial=0) >= 0 else values.astype(np.int32)


def _type(values: NDArray[Any]) -> str:
    return next(name for name, kind in TYPES.items() if values.dtype == kind)


def _bytes(values: NDArray[Any]) -> bytes:
    little = values.astype(values.dtype.newbyteorder("<"), copy=False)
    if values.dtype != np.float64:
        return little.tobytes()
    # All first bytes, then all second bytes, ...: exponents of neighbours are alike, and deflate
    # finds them.
    return little.view(np.uint8).reshape(-1, 8).T.tobytes()


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % ALIGNMENT)
