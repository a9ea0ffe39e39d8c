"""Types of ONNX values as protocol buffers, and the shapes in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from situate.errors import ReadError

Open = tuple[int | None, ...]
"""A shape; a dimension without a number is None."""

MOST_DIMENSIONS = 64
"""Most dimensions of one value; numpy's arrays have no more."""


def tensor(element: int, shape: Iterable[int | None] | None) -> Any:
    """The type of a tensor; one of unknown rank has no shape.

    Raises:
        ReadError: a size that no protocol buffer can have.
    """
    import onnx

    sizes = None if shape is None else list(shape)
    if sizes is not None and any(size is not None and size >= 2**63 for size in sizes):
        raise ReadError(f"a value has shape {sizes}: no size is 2^63 or more")
    return onnx.helper.make_tensor_type_proto(element, sizes)


def tensor_of(constant: Any) -> Any:
    """The type of a constant."""
    return tensor(constant.data_type, constant.dims)


def element(kind: Any) -> int:
    """The number of a tensor's element type; 0 if unknown."""
    return int(kind.tensor_type.elem_type) if kind is not None else 0


def shape_of(kind: Any) -> Open | None:
    """The shape in a type; None if the rank is unknown."""
    if kind is None or not kind.tensor_type.HasField("shape"):
        return None
    return tuple(map(_size, kind.tensor_type.shape.dim))


def _size(dim: Any) -> int | None:
    return int(dim.dim_value) if dim.HasField("dim_value") and dim.dim_value >= 0 else None


def sizes_of(kind: Any) -> tuple[int, ...]:
    """The shape in a type whose dimensions all have numbers."""
    return tuple(dim.dim_value for dim in kind.tensor_type.shape.dim)


def collection(kind: Any) -> str | None:
    """`sequence`, `optional` or `map` for other types than tensors; a sequence of maps is `map`."""
    which = (kind and kind.WhichOneof("value")) or "tensor_type"
    if which == "sequence_type" and kind.sequence_type.elem_type.HasField("map_type"):
        which = "map_type"
    name = str(which).removesuffix("_type")
    return None if name in ("tensor", "sparse_tensor") else name


def check_rank(name: str, shape: Sequence[Any]) -> None:
    """A long vector in place of a shape makes a value of as many dimensions as it has elements."""
    if (rank := len(shape)) > MOST_DIMENSIONS:
        raise ReadError(f"value {name!r}: has {rank} dimensions, more than {MOST_DIMENSIONS}")
