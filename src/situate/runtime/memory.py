"""One block of memory that several processes map, and where tensors lie in it."""

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

ALIGNMENT = 64
"""Bytes: PyTorch's own, so that kernels take the same paths."""


@dataclass(frozen=True)
class Place:
    """The place of a tensor in a block."""

    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    def view(self, raw: torch.Tensor) -> torch.Tensor:
        """The tensor, in a block of bytes. To PyTorch its storage is its own, so that a state dict
        saves what it holds and no more."""
        import torch

        count = extent(self.size, self.stride)
        if not count:
            return torch.empty_strided(self.size, self.stride, dtype=self.dtype, device="cpu")
        block = raw.numpy()
        flat = torch.frombuffer(block, dtype=self.dtype, count=count, offset=self.offset)
        return flat.as_strided(self.size, self.stride)


class Layout:
    """Places tensors one behind the other."""

    def __init__(self) -> None:
        self.nbytes = 0

    def place(self, size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> Place:
        """A place for a tensor of these sizes and strides."""
        place = Place(self.nbytes, tuple(size), tuple(stride), dtype)
        taken = extent(size, stride) * dtype.itemsize
        self.nbytes += -(-taken // ALIGNMENT) * ALIGNMENT
        return place

    def like(self, tensor: torch.Tensor) -> Place:
        """A place for a tensor such as this one."""
        return self.place(tuple(tensor.shape), strides(tensor), tensor.dtype)

    def nodes(self, nodes: Iterable[Node]) -> tuple[Place, ...]:
        """Places for the values of these nodes of a captured graph."""
        return tuple(self.like(node.meta["val"]) for node in nodes)

    def block(self, places: Sequence[Place], nbytes: int) -> list[Place]:
        """Places for what lies at these in a block of so many bytes, on pages of its own: who locks
        them locks no part of another tensor."""
        begin = _pages(self.nbytes)
        self.nbytes = begin + _pages(nbytes)
        return [replace(place, offset=begin + place.offset) for place in places]

    def dense(self, tensor: torch.Tensor) -> Place:
        """A place for a tensor such as this one; one with gaps or repeats becomes contiguous."""
        if extent(tuple(tensor.shape), tensor.stride()) == tensor.numel():
            return self.like(tensor)
        return self.like(tensor.new_empty(tensor.shape, device="meta"))


def _pages(nbytes: int) -> int:
    """Bytes of the pages that so many take."""
    return -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE


def strides(tensor: torch.Tensor) -> tuple[int, ...]:
    """The strides of a tensor; of one whose elements lie on top of one another, as an expanded
    one's do, and which no kernel writes to, those of a contiguous one."""
    import torch

    found = tuple(zip(tensor.shape, tensor.stride(), strict=True))
    if any(length > 1 and step == 0 for length, step in found):
        return torch.empty(tensor.shape, device="meta").stride()
    return tensor.stride()


def extent(size: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """Elements from the first to the last of a tensor."""
    if 0 in size:
        return 0
    return 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))


def anonymous_file(nbytes: int) -> int:
    """The descriptor of a file in memory that has no name: it is gone with the last process."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("situate")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, max(nbytes, 1))
    return descriptor


def mapped(descriptor: int) -> torch.Tensor:
    """The bytes of a file in memory; whatever views them keeps them mapped."""
    import torch

    return torch.frombuffer(mmap.mmap(descriptor, 0), dtype=torch.uint8)
