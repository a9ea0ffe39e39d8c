"""Bytes that captured ops read and write, against figures worked out by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from situate.torch_capture import cost

TABLE = torch.empty(50_000, 64, device="meta")
"""Rows of 256 bytes."""

INDICES = torch.empty(100, dtype=torch.int64, device="meta")


def empty(*shape):
    return torch.empty(shape, device="meta")


@pytest.mark.parametrize("kind", ["aten.embedding", "aten.index", "aten._unsafe_index"])
def test_what_takes_rows_reads_no_more_than_it_takes(kind):
    assert cost.traffic(kind, [TABLE, INDICES], empty(100, 64)) == 2 * 25_600 + 800


def test_what_takes_numbers_reads_no_more_than_it_takes():
    assert cost.traffic("aten.take", [TABLE, INDICES], empty(100)) == 2 * 400 + 800


def test_a_loss_reads_one_class_a_pixel():
    scores, classes = empty(2, 150, 64, 64), torch.empty(2, 64, 64, dtype=torch.int64)
    written = (empty(2, 64, 64), empty())
    expected = 2 * (4 * 8192 + 4) + 8 * 8192
    assert cost.traffic("aten.nll_loss2d_forward", [scores, classes], written) == expected


class TestBags:
    """Each of ten bags holds ten of the table's rows, and is their sum."""

    offsets = torch.empty(10, dtype=torch.int64, device="meta")

    @pytest.mark.parametrize("kind", ["_embedding_bag", "_embedding_bag_forward_only"])
    def test_their_rows_are_read_and_no_more(self, kind):
        given = [TABLE, INDICES, self.offsets]
        assert cost.traffic(f"aten.{kind}", given, empty(10, 64)) == 25_600 + 800 + 80 + 2_560

    def test_of_a_small_table_at_most_all_is_read(self):
        given = [TABLE[:50], INDICES, self.offsets]
        assert cost.traffic("aten._embedding_bag", given, empty(10, 64)) == 12_800 + 880 + 2_560


def of(*dtypes: torch.dtype) -> list[object]:
    return [torch.empty(16, 16, dtype=dtype, device="meta") for dtype in dtypes]


BYTES, HALF, SINGLE = torch.int8, torch.bfloat16, torch.float32


@pytest.mark.parametrize(
    ("kind", "given", "made", "dtype"),
    [
        ("aten.mm", (HALF, HALF), SINGLE, "bfloat16"),
        ("aten.addmm", (SINGLE, HALF, HALF), SINGLE, "bfloat16"),
        ("aten._scaled_mm", (torch.float8_e4m3fn, torch.float8_e5m2), HALF, "float8_e4m3fn"),
        ("aten._int_mm", (BYTES, BYTES), torch.int32, "int8"),
        ("mine.product", (torch.int64, torch.uint8, BYTES, SINGLE), SINGLE, "uint8"),
        ("aten._weight_int8pack_mm", (HALF, BYTES, HALF), HALF, "bfloat16"),
        ("aten.mm", (torch.int64, torch.int64), torch.int64, "int64"),
    ],
)
def test_the_dtype_of_a_product_is_that_of_what_is_multiplied(kind, given, made, dtype):
    assert cost.product_dtype(kind, of(*given), *of(made)) == dtype
