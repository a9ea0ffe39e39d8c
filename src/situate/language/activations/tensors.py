"""The tensors of a pass through a language model, in the order in which llama.cpp computes them.

After ggml (`ggml.c`): an op's inputs come before it, left to right, and stored tensors and inputs
of the graph are leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

F16, F32, I32, I64 = 2, 4, 4, 8
"""Bytes of an element."""


class Tensor:
    """A tensor of a graph.

    Attributes:
        size: bytes, of a view those of the elements that it shows.
        shape: elements by dimension, those of a row first.
        element: bytes of an element.
        sources: tensors that are read.
        root: the tensor whose memory a view shares; None for a tensor with memory of its own.
        in_place: the op may write over an input of the same shape.
        strided: a view whose rows are not next to each other.
        view: an op that only renames memory, and runs nowhere.
        dependency: True for a reader that the scheduler adds, so that its source stays until then.
        permanent: True for memory that no later tensor gets.
        device: number in the scheduler's list; -1 until it is assigned.
        weight: True for a matrix of the model.
        stored: True for weights and caches, which have memory of their own.
        entry: True for an input of the graph.
        free_choice: True for ops whose weights do not choose the device (rotary positions,
            attention).
        batch: tokens by which llama.cpp decides on op offload.
        visited: True once the tensor is in the graph.
        children, views: numbers of readers and of views that are still to come.
        address: (device, offset) in a compute buffer; None without memory there.
    """

    __slots__ = (
        "address",
        "batch",
        "children",
        "dependency",
        "device",
        "element",
        "entry",
        "free_choice",
        "in_place",
        "permanent",
        "root",
        "shape",
        "size",
        "sources",
        "stored",
        "strided",
        "view",
        "views",
        "visited",
        "weight",
    )

    def __init__(
        self,
        shape: tuple[int, ...],
        sources: Sequence[Tensor] = (),
        element: int = F32,
        in_place: bool = False,
        batch: int | None = None,
        size: int | None = None,
    ) -> None:
        self.shape, self.element = shape, element
        self.size = element * prod(shape) if size is None else size
        self.sources = list(sources)
        self.root: Tensor | None = None
        self.in_place = in_place
        self.strided = self.view = self.weight = self.stored = False
        self.entry = self.free_choice = self.dependency = self.permanent = self.visited = False
        self.device = -1
        self.batch = batch
        self.children = self.views = 0
        self.address: tuple[int, int] | None = None

    def offload_batch(self) -> int:
        """The batch by which llama.cpp decides on op offload: by default all rows."""
        return prod(self.shape[1:]) if self.batch is None else self.batch

    def like(self, other: Tensor) -> bool:
        """True if both have elements of one size in the same places."""
        return (
            self.size == other.size
            and self.element == other.element
            and not (self.strided or other.strided)
            and _stripped(self.shape) == _stripped(other.shape)
        )


def _stripped(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape without trailing ones."""
    end = len(shape)
    while end > 1 and shape[end - 1] == 1:
        end -= 1
    return shape[:end]


def view(tensor: Tensor, shape: tuple[int, ...], contiguous: bool = True) -> Tensor:
    """The memory of a tensor in another shape."""
    result = Tensor(shape, (tensor,), tensor.element, size=tensor.size)
    result.strided = not contiguous
    result.root = tensor.root or tensor
    result.view = True
    return result


def part(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A part of each row of a tensor, whose last row ends the memory that it spans."""
    result = view(tensor, shape, contiguous=False)
    rows = shape[-1] if len(shape) < 4 else shape[-1] * shape[-2]
    row = prod(shape) // rows * F32
    # As ggml counts a view: the stride of all rows but the last, and the last row alone.
    result.size = min(tensor.size // rows * (rows - 1) + row, tensor.size)
    return result


class Graph:
    """Ops in the order of their computation, and leaves in the order of their first use."""

    def __init__(self) -> None:
        self.nodes: list[Tensor] = []
        self.leaves: list[Tensor] = []

    def expand(self, tensor: Tensor) -> Tensor:
        """Append a tensor behind everything that it reads."""
        if not tensor.visited:
            tensor.visited = True
            for source in tensor.sources:
                if not source.visited:
                    self.expand(source)
            (self.nodes if tensor.sources else self.leaves).append(tensor)
        return tensor


def entry(shape: tuple[int, ...], element: int = F32) -> Tensor:
    """An input of the graph, which lies in host memory."""
    tensor = Tensor(shape, (), element)
    tensor.entry = True
    return tensor


def stored(shape: tuple[int, ...], size: int, device: int, weight: bool) -> Tensor:
    """A weight or a cache on a device."""
    tensor = Tensor(shape, (), size=size)
    tensor.stored, tensor.weight, tensor.device = True, weight, device
    return tensor
