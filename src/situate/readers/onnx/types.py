"""Element types and shapes of the values of an ONNX graph."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from situate.errors import ReadError

# Types of ONNX values as protocol buffers, and the shapes in them.
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


# Shapes and element types of the values of an ONNX graph, with a number for every dimension.
Shape = tuple[int, ...]

NAMES = {"float": "float32", "double": "float64"}
"""Element types whose names in ONNX differ from the usual ones."""


@dataclass(frozen=True)
class Info:
    """Shape and type of a value."""

    shape: Shape
    dtype: str

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Rounded up; a text counts as a pointer."""
        # The first number in the name of a type is its bits, as in float8e4m3fn.
        bits = re.search(r"\d+", self.dtype.replace("string", "64").replace("bool", "8"))
        return -(-self.elements * int(bits[0] if bits else 8) // 8)


@dataclass(frozen=True)
class Shapes:
    """Shapes and types of the values of a graph and of the graphs around it."""

    values: Mapping[str, Info]
    outer: Shapes | None = None

    @classmethod
    def of(cls, graph: Any, outer: Shapes | None = None) -> Shapes:
        """The shapes of an inferred graph."""
        values = {}
        for value in (*graph.input, *graph.value_info, *graph.output):
            if value.type.tensor_type.HasField("shape"):
                dims = (max(d.dim_value, 0) for d in value.type.tensor_type.shape.dim)
                values[value.name] = Info(tuple(dims), _dtype(value.type.tensor_type.elem_type))
        values |= {t.name: tensor_info(t) for t in graph.initializer}
        for sparse in graph.sparse_initializer:
            values[sparse.values.name] = tensor_info(sparse.values)
        return cls(values, outer)

    def get(self, name: str) -> Info | None:
        """The shape and type of a value; None if unknown."""
        if name in self.values or self.outer is None:
            return self.values.get(name)
        return self.outer.get(name)


def tensor_info(tensor: Any) -> Info:
    """Shape and type of a constant.

    Raises:
        ReadError: a negative dimension.
    """
    if any(dim < 0 for dim in tensor.dims):
        raise ReadError(f"tensor {tensor.name!r}: has a negative dimension: {list(tensor.dims)}")
    return Info(tuple(tensor.dims), _dtype(tensor.data_type))


def _dtype(number: int) -> str:
    import onnx

    if number not in onnx.TensorProto.DataType.values():
        raise ReadError(f"unknown element type {number}; a newer onnx may know it")
    name = str(onnx.TensorProto.DataType.Name(number)).lower()
    return NAMES.get(name, name)
