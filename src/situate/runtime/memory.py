"""One block of memory that several processes map, and the places of tensors in it."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch.fx import Node

    from situate.torch_capture.cuts.state import StatePart

ALIGNMENT = 64
"""PyTorch's alignment in bytes, so that kernels take the same paths."""


@dataclass(frozen=True)
class Place:
    """The place of a tensor in a block."""

    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    def shifted(self, nbytes: int) -> Place:
        """The place `nbytes` further on."""
        return replace(self, offset=self.offset + nbytes)

    def of_part(self, part: StatePart) -> Place:
        """The place of a part of the tensor."""
        import torch

        whole = torch.empty_strided(self.size, self.stride, dtype=self.dtype, device="meta")
        own = part.view(whole)
        offset = self.offset + int(own.storage_offset()) * self.dtype.itemsize
        return Place(offset, tuple(own.shape), own.stride(), self.dtype)

    def view(self, raw: torch.Tensor) -> torch.Tensor:
        """The tensor, in a block of bytes. PyTorch sees a storage of its own, so a state dict saves
        this tensor alone."""
        import torch

        count = extent(self.size, self.stride)
        if not count:
            return torch.empty_strided(self.size, self.stride, dtype=self.dtype, device="cpu")
        block = raw.numpy()
        flat = torch.frombuffer(block, dtype=self.dtype, count=count, offset=self.offset)
        return flat.as_strided(self.size, self.stride)


def misalignment(tensor: torch.Tensor) -> int:
    """Bytes from the last aligned address to a CPU tensor, such as a part of a batch; 0 on other
    devices. Kernels' rounding may depend on it."""
    return tensor.data_ptr() % ALIGNMENT if tensor.device.type == "cpu" else 0


def aligned_alike(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the tensor's strides and alignment, so that kernels round equally."""
    import torch

    if tensor.device.type != "cpu" or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return tensor.detach().clone()
    # Room for the elements, and for a shift to the same remainder of the address.
    place = Layout().like(tensor)
    room = extent(place.size, place.stride) * tensor.dtype.itemsize + 2 * ALIGNMENT
    raw = torch.empty(room, dtype=torch.uint8, device="cpu")
    begin = (tensor.data_ptr() - raw.data_ptr()) % ALIGNMENT
    there = place.shifted(begin)
    with torch.no_grad():
        there.view(raw).copy_(tensor)
    # A new view, because the version of this one counts the write above.
    return there.view(raw)


class Layout:
    """Consecutive places for tensors."""

    def __init__(self) -> None:
        self.nbytes = 0

    def place(self, size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> Place:
        """A place for a tensor of these sizes and strides."""
        place = Place(self.nbytes, tuple(size), tuple(stride), dtype)
        nbytes = extent(size, stride) * dtype.itemsize
        self.nbytes += -(-nbytes // ALIGNMENT) * ALIGNMENT
        return place

    def like(self, tensor: torch.Tensor) -> Place:
        """A place for a tensor like this one."""
        return self.place(tuple(tensor.shape), strides(tensor), tensor.dtype)

    def nodes(self, nodes: Iterable[Node]) -> tuple[Place, ...]:
        """Places for the values of nodes of a captured graph."""
        return tuple(self.like(node.meta["val"]) for node in nodes)

    def shiftable(self, nodes: Iterable[Node]) -> tuple[Place, ...]:
        """The same, with room to shift each value by less than an alignment."""
        return tuple(self._shiftable(node.meta["val"]) for node in nodes)

    def _shiftable(self, tensor: torch.Tensor) -> Place:
        place = self.like(tensor)
        self.nbytes += ALIGNMENT
        return place

    def block(self, places: Sequence[Place], nbytes: int) -> list[Place]:
        """The places, moved into a block of `nbytes` on pages of its own. Locking these pages locks
        no part of another tensor."""
        begin = _pages(self.nbytes)
        self.nbytes = begin + _pages(nbytes)
        return [replace(place, offset=begin + place.offset) for place in places]

    def dense(self, tensor: torch.Tensor) -> Place:
        """A place for a tensor like this one, with equal alignment; a tensor with gaps or overlaps
        becomes contiguous."""
        # As many addresses as numbers: no gaps and no overlaps.
        if extent(tuple(tensor.shape), tensor.stride()) == tensor.numel():
            shift = misalignment(tensor)
            place = self._shiftable(tensor) if shift else self.like(tensor)
            return place.shifted(shift)
        return self.like(tensor.new_empty(tensor.shape, device="meta"))


def _pages(nbytes: int) -> int:
    """Bytes of the pages that hold `nbytes`."""
    return -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE


def strides(tensor: torch.Tensor) -> tuple[int, ...]:
    """The strides of a tensor; contiguous ones for a tensor with overlapping elements, such as an
    expanded one, which no kernel writes."""
    import torch

    dimensions = tuple(zip(tensor.shape, tensor.stride(), strict=True))
    if any(length > 1 and step == 0 for length, step in dimensions):
        return torch.empty(tensor.shape, device="meta").stride()
    return tensor.stride()


def extent(size: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """Number of elements from a tensor's first address to its last."""
    if 0 in size:
        return 0
    return 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))


def anonymous_file(nbytes: int) -> int:
    """The descriptor of a nameless file in memory, which disappears with its last process."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("situate")
    else:
        with tempfile.TemporaryFile() as file:
            # The duplicate outlives the temporary file, which is unlinked.
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, max(nbytes, 1))
    return descriptor


def mapped(descriptor: int) -> torch.Tensor:
    """The bytes of a file in memory; a view of them keeps the file mapped."""
    import torch

    return torch.frombuffer(mmap.mmap(descriptor, 0), dtype=torch.uint8)
