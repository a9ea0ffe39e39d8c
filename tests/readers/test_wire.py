"""The outermost layer of protocol buffers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.readers.wire import BYTES, MOST_FIELDS, VARINT, fields, first_fields, shape


def test_fields_are_told_apart():
    message = b"\x08\x96\x01" + b"\x12\x03abc" + b"\x1d\0\0\0\0" + b"\x21" + bytes(8)
    results = [(number, kind, bytes(value)) for number, kind, value in fields(message)]
    assert results[0] == (1, VARINT, b"\x96\x01")
    assert results[1] == (2, BYTES, b"abc")
    assert [number for number, _, _ in results] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "data", [b"\x08", b"\x12\x05abc", b"\x1d\0", b"\x00\x01", b"\x0b", b"\x08" + b"\xff" * 11]
)
def test_what_is_no_message_has_no_shape(data):
    assert shape(data) is None


def test_only_the_first_fields_are_looked_at():
    many = b"\x08\x01" * MOST_FIELDS
    assert shape(many[2:] + b"\x08") is None
    assert shape(many + b"\x08") == {1: VARINT}
    assert sum(1 for _ in first_fields(many * 2)) == MOST_FIELDS


@given(st.binary(max_size=64))
def test_no_bytes_crash_it(data):
    shape(data)
