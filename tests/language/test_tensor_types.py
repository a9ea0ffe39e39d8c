"""Bytes of tensors by type."""

from __future__ import annotations

import pytest

from situate.errors import ReadError
from situate.language.tensor_types import (
    BY_NUMBER,
    OBSOLETE,
    TYPES,
    named_type,
    numbered_type,
)
from tests.language.files import table, table_rows


def test_rows_are_whole_blocks():
    assert TYPES["Q4_K"].row_bytes(512) == 2 * 144
    assert TYPES["Q4_K"].tensor_bytes((256, 10, 3)) == 30 * 144
    assert TYPES["F32"].tensor_bytes((7,)) == 28
    with pytest.raises(ReadError, match="rows of 100 elements, and Q4_K needs a multiple of 256"):
        TYPES["Q4_K"].row_bytes(100)


def test_some_types_have_heads_beside_their_blocks():
    assert TYPES["IQ4_KS"].tensor_bytes((256, 10)) == 10 * (136 + 4)
    assert TYPES["I2_S"].tensor_bytes((256, 10)) == 640 + 32


def test_bits_of_an_element():
    assert TYPES["Q8_0"].bits == 8.5
    assert TYPES["Q4_K"].bits == 4.5
    assert not TYPES["BF16"].quantized
    assert TYPES["MXFP4"].quantized


# Logs of real quantisations print the MiB of each tensor, with two or three decimals.
@pytest.mark.parametrize(
    "name", ["bitnet-2b", "deepseek-r1-mix", "deepseek-r1-mix2", "deepseek-v2-lite-iq4_k_r4"]
)
def test_bytes_are_those_of_real_quantisations(name):
    rows = [row for row in table_rows(table(name)) if row[2][1] is not None]
    assert len(rows) > 200
    for tensor, shape, (kind, mib) in rows:
        size = TYPES[kind].tensor_bytes(shape) / 2**20
        assert size == pytest.approx(mib, abs=0.0051), tensor


def test_numbers_and_names_find_the_same_types():
    for number, kind in BY_NUMBER.items():
        assert numbered_type(number) is named_type(kind.name.lower()) is kind
    assert not OBSOLETE.keys() & BY_NUMBER.keys()


def test_unknown_types_are_refused():
    with pytest.raises(ReadError, match="type 12345, which neither"):
        numbered_type(12345)
    with pytest.raises(ReadError, match=r"Q4_0_8_8, which llama\.cpp no longer reads"):
        numbered_type(33)
    with pytest.raises(ReadError, match="unknown tensor type 'q4_x'; did you mean"):
        named_type("q4_x")
