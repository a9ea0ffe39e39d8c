"""The outermost layer of protocol buffers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.readers.wire import BYTES, VARINT, fields, shape


def test_fields_are_told_apart():
    message = b"\x08\x96\x01" + b"\x12\x03abc" + b"\x1d\0\0\0\0" + b"\x21" + bytes(8)
    found = [(number, kind, bytes(value)) for number, kind, value in fields(message)]
    assert found[0] == (1, VARINT, b"\x96\x01")
    assert found[1] == (2, BYTES, b"abc")
    assert [number for number, _, _ in found] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "data", [b"\x08", b"\x12\x05abc", b"\x1d\0", b"\x00\x01", b"\x0b", b"\x08" + b"\xff" * 11]
)
def test_what_is_no_message_has_no_shape(data):
    assert shape(data) is None


@given(st.binary(max_size=64))
def test_no_bytes_crash_it(data):
    shape(data)
