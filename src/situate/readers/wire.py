"""The outermost layer of a protocol buffer, for recognising its message type."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

MOST_FIELDS = 2**14
"""Most fields that are read to recognise a message: blanks are a field every two bytes."""


def shape(data: bytes | memoryview) -> dict[int, int] | None:
    """The wire type of every field number among the first fields of the message, None if they are
    no such message."""
    types: dict[int, int] = {}
    try:
        for number, kind, _ in first_fields(data):
            # A repeated number may be packed into bytes in one place and not in another.
            if types.setdefault(number, kind) != kind and BYTES not in (types[number], kind):
                return None
    except ValueError:
        return None
    return types


def first_fields(data: bytes | memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """The first `MOST_FIELDS` of `fields`."""
    return islice(fields(data), MOST_FIELDS)


def fields(data: bytes | memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Number, wire type and raw value of every field, in order.

    Raises:
        ValueError: the data ends early or is no protocol buffer.
    """
    view, at = memoryview(data), 0
    while at < len(view):
        # A key holds the field number above three bits of wire type.
        key, at = _varint(view, at)
        number, kind = key >> 3, key & 7
        if not number:
            raise ValueError("field number 0")
        start, end = _span(view, at, kind)
        if end > len(view):
            raise ValueError("ends early")
        yield number, kind, view[start:end]
        at = end


def _span(view: memoryview, at: int, kind: int) -> tuple[int, int]:
    """Start and end of a value."""
    if kind == VARINT:
        return at, _varint(view, at)[1]
    if kind == BYTES:
        length, start = _varint(view, at)
        return start, start + length
    if kind in (FIXED32, FIXED64):
        return at, at + (4 if kind == FIXED32 else 8)
    raise ValueError(f"wire type {kind}")


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    """The number at `at`, and its end."""
    value = 0
    # Seven bits a byte, the lowest first: 64 bits take at most ten bytes.
    for i in range(10):
        if at + i >= len(view):
            raise ValueError("ends early")
        byte = view[at + i]
        value |= (byte & 127) << (7 * i)
        if byte < 128:
            return value, at + i + 1
    raise ValueError("varint too long")
