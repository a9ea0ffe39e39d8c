"""Tensors in one block of memory."""

from __future__ import annotations

import io
import mmap
import os

import pytest

torch = pytest.importorskip("torch")

from situate.runtime.memory import (  # noqa: E402
    ALIGNMENT,
    Layout,
    Place,
    aligned_alike,
    anonymous_file,
    extent,
    mapped,
    misalignment,
)

LIKE = [
    torch.ones(3, 4),
    torch.ones(3, 4).t(),
    torch.ones(2, 3, 4, 4).to(memory_format=torch.channels_last),
    torch.ones(()),
    torch.ones(0, 4),
    torch.ones(5, dtype=torch.int64),
    torch.ones(3, dtype=torch.bool),
    torch.ones(7, dtype=torch.bfloat16),
    torch.ones(6)[::2],
    torch.ones(4).expand(3, 4),
]


# Places of tensors.
def test_a_tensor_has_its_shape_strides_type_and_alignment() -> None:
    layout = Layout()
    places = [layout.like(tensor) for tensor in LIKE]
    raw = torch.zeros(layout.nbytes, dtype=torch.uint8)
    for place, tensor in zip(places, LIKE, strict=True):
        view = place.view(raw)
        assert (view.shape, view.dtype) == (tensor.shape, tensor.dtype)
        assert view.stride() == (tensor.stride() if 0 not in tensor.stride() else (4, 1))
        assert place.offset % ALIGNMENT == 0


def test_an_overlapping_tensor_gets_a_writable_place() -> None:
    expanded, layout = torch.arange(4.0).expand(3, 4), Layout()
    place = layout.like(expanded)
    view = place.view(torch.zeros(layout.nbytes, dtype=torch.uint8))
    assert torch.equal(view.copy_(expanded), expanded)


def test_no_tensor_lies_over_another() -> None:
    layout = Layout()
    places = [layout.like(tensor) for tensor in LIKE]
    raw = torch.zeros(layout.nbytes, dtype=torch.uint8)
    views = [place.view(raw) for place in places]
    for k, view in enumerate(views):
        view.fill_(k % 2)
    assert all(bool((view == k % 2).all()) for k, view in enumerate(views))


# Views and mappings of a block.
def test_a_write_shows_in_a_view_of_the_block() -> None:
    layout = Layout()
    place = layout.place((2,), (1,), torch.float32)
    raw = torch.zeros(layout.nbytes, dtype=torch.uint8)
    one, other = place.view(raw), place.view(raw)
    one.fill_(3.0)
    assert other.tolist() == [3.0, 3.0]
    assert one.data_ptr() == other.data_ptr() == raw.data_ptr() + place.offset


def test_a_view_outlives_the_block() -> None:
    layout = Layout()
    layout.place((1000,), (1,), torch.float64)
    place = layout.place((3,), (1,), torch.float32)
    descriptor = anonymous_file(layout.nbytes)
    view = place.view(mapped(descriptor))
    os.close(descriptor)
    view.fill_(2.0)
    assert view.tolist() == [2.0] * 3


def test_a_saved_tensor_takes_its_own_bytes_only() -> None:
    layout = Layout()
    layout.place((100_000,), (1,), torch.int64)
    place = layout.place((3,), (1,), torch.float32)
    raw = torch.zeros(layout.nbytes, dtype=torch.uint8)
    file = io.BytesIO()
    torch.save(place.view(raw), file)
    assert file.tell() < 10_000


def test_a_write_shows_in_another_mapping() -> None:
    descriptor = anonymous_file(100)
    one, other = mapped(descriptor), mapped(descriptor)
    os.close(descriptor)
    one[7] = 9
    assert one.data_ptr() != other.data_ptr()
    assert other[7] == 9


def test_an_empty_block_can_be_mapped() -> None:
    descriptor = anonymous_file(0)
    assert mapped(descriptor).numel() == 1
    os.close(descriptor)


# Dense places, pages and alignment.
@pytest.mark.parametrize("tensor", LIKE)
def test_a_dense_place_has_neither_gaps_nor_repeats(tensor: torch.Tensor) -> None:
    place = Layout().dense(tensor)
    assert place.size == tuple(tensor.shape)
    assert extent(place.size, place.stride) == tensor.numel()
    if extent(tuple(tensor.shape), tensor.stride()) == tensor.numel():
        assert place.stride == tensor.stride()


def test_extent() -> None:
    assert [extent((3, 4), (4, 1)), extent((3, 4), (0, 1)), extent((3,), (2,))] == [12, 4, 5]
    assert [extent((), ()), extent((0, 5), (5, 1))] == [1, 0]


def test_a_block_has_pages_of_its_own() -> None:
    layout = Layout()
    before = layout.place((3,), (1,), torch.float32)
    (inside,) = layout.block([Place(64, (2,), (1,), torch.float32)], 100)
    after = layout.place((3,), (1,), torch.float32)
    pages = [place.offset // mmap.PAGESIZE for place in (before, inside, after)]
    assert pages == [0, 1, 2]
    assert inside.offset == mmap.PAGESIZE + 64


ROOM = torch.randn(40)


@pytest.mark.parametrize(
    "tensor",
    [
        ROOM[3:15].view(3, 4),
        ROOM[1:13].view(3, 4).t(),
        ROOM[::3],
        ROOM[2:3].expand(4),
        ROOM.half()[5:],
        ROOM.to(torch.complex64).conj()[1:],
        ROOM[:0],
    ],
)
def test_a_copy_is_aligned_alike(tensor: torch.Tensor) -> None:
    copy = aligned_alike(tensor)
    assert torch.equal(copy, tensor)
    assert copy.untyped_storage()._cdata != tensor.untyped_storage()._cdata
    assert copy.numel() == 0 or misalignment(copy) == misalignment(tensor)


@pytest.mark.parametrize("offset", [0, 1, 5])
def test_state_is_placed_as_it_is_aligned(offset: int) -> None:
    layout, tensor = Layout(), ROOM[offset : offset + 12]
    first, second = layout.dense(tensor), layout.dense(torch.ones(3))
    assert first.offset % ALIGNMENT == misalignment(tensor)
    assert second.offset % ALIGNMENT == 0
    assert second.offset >= first.offset + 48
