"""Shapes and element types of the values of an ONNX graph, with a number for every dimension."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from situate.errors import ReadError

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
