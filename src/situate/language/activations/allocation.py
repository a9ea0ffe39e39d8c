"""Addresses in compute buffers, as ggml's allocator gives them (`ggml-alloc.c`).

Each device has one buffer. A tensor gets the smallest hole that holds it, or else the end of the
buffer. Its bytes are free again after its last reader. An op in place takes over the memory of an
input that nobody reads later.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from situate.language.activations.tensors import Tensor

ALIGNMENT = 128
"""Tensors begin at multiples of this many bytes on a GPU."""


class Buffer:
    """A buffer that grows at its end.

    Attributes:
        peak: bytes up to the end of the last tensor.
    """

    def __init__(self) -> None:
        self.peak = 0
        self._offsets = [0]
        # The last hole has no end: the buffer grows into it.
        self._sizes = [2**62]

    def take(self, size: int) -> int:
        """The offset of `size` free bytes, from the smallest hole that holds them."""
        sizes = self._sizes
        best = len(sizes) - 1
        for i in range(len(sizes) - 1):
            # Of equal holes ggml takes the last one.
            if size <= sizes[i] <= sizes[best]:
                best = i
        offset = self._offsets[best]
        self._offsets[best] += size
        sizes[best] -= size
        if not sizes[best]:
            del self._offsets[best], sizes[best]
        self.peak = max(self.peak, offset + size)
        return offset

    def release(self, offset: int, size: int) -> None:
        """Free bytes again, and join them with the holes beside them."""
        offsets, sizes = self._offsets, self._sizes
        i = bisect_left(offsets, offset)
        if i and offsets[i - 1] + sizes[i - 1] == offset:
            i -= 1
            sizes[i] += size
        else:
            offsets.insert(i, offset)
            sizes.insert(i, size)
        if i + 1 < len(sizes) and offsets[i] + sizes[i] == offsets[i + 1]:
            sizes[i] += sizes[i + 1]
            del offsets[i + 1], sizes[i + 1]


class Allocator:
    """The compute buffers of all devices.

    Attributes:
        buffers: by device.
    """

    def __init__(self, devices: int) -> None:
        self.buffers = [Buffer() for _ in range(devices)]

    def run(self, leaves: Sequence[Tensor], nodes: Sequence[Tensor]) -> list[int]:
        """(devices,) bytes that each buffer needs for a graph with assigned devices."""
        for leaf in leaves:
            self._place(leaf)
        for node in nodes:
            if node.root is not None and not node.dependency:
                node.root.views += 1
            for source in node.sources:
                source.children += 1
                if source.entry:
                    self._place(source)
        for node in nodes:
            for source in node.sources:
                self._place(source)
            self._place(node)
            for source in node.sources:
                self._leave(source)
        return [buffer.peak for buffer in self.buffers]

    def _place(self, tensor: Tensor) -> None:
        """Give a tensor memory, unless it has some or needs none."""
        if tensor.address is not None or tensor.stored or tensor.root is not None:
            return
        if tensor.in_place and self._inherit(tensor):
            return
        offset = self.buffers[tensor.device].take(_aligned(tensor.size))
        tensor.address = (tensor.device, offset)

    def _inherit(self, tensor: Tensor) -> bool:
        """Take over the memory of an input; False if there is none that nobody else needs."""
        for source in tensor.sources:
            # A view has no memory of its own to give.
            if source.address is None or source.permanent or not source.like(tensor):
                continue
            if source.children != 1 or source.views:
                continue
            tensor.address, source.address = source.address, None
            return True
        return False

    def _leave(self, source: Tensor) -> None:
        """Count a reader less, and free the memory that no reader or view needs."""
        source.children -= 1
        if source.children or source.views:
            return
        owner = source
        if source.root is not None:
            owner = source.root
            owner.views -= 1
            if owner.views or owner.children:
                return
        if owner.address is not None and not owner.permanent:
            device, offset = owner.address
            self.buffers[device].release(offset, _aligned(owner.size))
            owner.address = None


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
