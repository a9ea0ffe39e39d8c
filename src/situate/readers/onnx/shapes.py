"""Shapes of all values of an ONNX model, with its symbolic dimensions made numbers."""

from __future__ import annotations

import math
import re
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from situate.errors import ReadError, nearest
from situate.graph import BYTES_LIMIT
from situate.readers.contents import one_line
from situate.readers.onnx.known import known_values

Shape = tuple[int, ...]

CONSTANT_LIMIT = 4096
"""Bytes up to which a constant's content is kept: it may be a shape that others follow from."""

DEEPEST = 32
"""Functions that call functions: the longest such chain that is read."""

MOST_DIMENSIONS = 64
"""Of one value; as many as numpy's arrays have."""

MOST_JOINED = 2**18
"""Elements of all vectors that a model joins, up to which their content is followed."""

MOST_NODES = 250_000
"""Of a model whose functions are spread out."""

CARRIERS = {"Add", "Cast", "Concat", "Gather", "Mul", "Slice", "Squeeze", "Sub", "Unsqueeze"}
"""Ops through which shape inference follows the content of vectors."""

NAMES = {"float": "float32", "double": "float64"}
"""Types whose name in ONNX is not what everybody else calls them."""


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
    """What is known of the values of a graph and of the graphs around it."""

    values: Mapping[str, Info]
    outer: Shapes | None = None
    collections: Mapping[str, str] = field(default_factory=dict)
    """What those are that are no tensors: `sequence`, `optional`, `map`."""

    @classmethod
    def of(cls, graph: Any, outer: Shapes | None = None) -> Shapes:
        """Those of an inferred graph."""
        values, collections = {}, {}
        for value in (*graph.input, *graph.value_info, *graph.output):
            kind = (value.type.WhichOneof("value") or "tensor_type").removesuffix("_type")
            if kind not in ("tensor", "sparse_tensor"):
                collections[value.name] = kind
            if value.type.tensor_type.HasField("shape"):
                dims = (max(d.dim_value, 0) or _or_one(d) for d in value.type.tensor_type.shape.dim)
                values[value.name] = Info(tuple(dims), _dtype(value.type.tensor_type.elem_type))
        values |= {t.name: tensor_info(t) for t in graph.initializer}
        for sparse in graph.sparse_initializer:
            values[sparse.values.name] = tensor_info(sparse.values)
        return cls(values, outer, collections)

    def get(self, name: str) -> Info | None:
        """None where nothing is known."""
        if name in self.values or self.outer is None:
            return self.values.get(name)
        return self.outer.get(name)


def _or_one(dim: Any) -> int:
    """0 where the model says so, 1 where it says nothing."""
    return 0 if dim.HasField("dim_value") and dim.dim_value == 0 else 1


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


@dataclass(frozen=True)
class Inferred:
    """A model without functions, symbolic dimensions and (as far as can be) unknown shapes."""

    graph: Any
    known: frozenset[str]
    """Values that do not depend on any input's data."""
    warnings: tuple[str, ...]


def infer(model: Any, dims: Mapping[str, int]) -> Inferred:
    """The model with numbers for its symbolic dimensions, and what follows from them.

    Raises:
        ReadError: a dimension in `dims` that the model does not have or that is not positive,
            shapes that contradict one another, functions that stand for too much.
    """
    import onnx.inliner
    import onnx.shape_inference

    if model.functions:
        _check_functions(model)
    _forget_weights(model.graph)
    warnings = _fix_dims(model.graph, dims)
    try:
        if model.functions:
            model = onnx.inliner.inline_local_functions(model)
        model = onnx.shape_inference.infer_shapes(model)
        if _joined(model.graph) <= MOST_JOINED:
            model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception as error:  # onnx raises whatever its C++ parts throw
        raise ReadError(f"shape inference failed: {one_line(str(error))[:300]}") from None
    _check_ranks(model.graph)
    known = frozenset(known_values(model))
    return Inferred(model.graph, known, (*warnings, *_unknown(model.graph)))


def _check_functions(model: Any) -> None:
    """Functions that call others twice, which do so in turn, are few bytes and no end of nodes."""
    left, sizes = list(model.functions), dict[tuple[str, str], int]()
    for _ in range(DEEPEST):
        callers = {(function.domain, function.name) for function in left}
        ready = [callers.isdisjoint(_called(function.node)) for function in left]
        for function in (f for f, is_ready in zip(left, ready, strict=True) if is_ready):
            key = function.domain, function.name
            sizes[key] = max(_spread(function.node, sizes), sizes.get(key, 0))
        left = [f for f, is_ready in zip(left, ready, strict=True) if not is_ready]
    if left:
        raise ReadError(
            f"function {left[0].name!r}: calls itself, or others more than {DEEPEST} deep"
        )
    if _spread(model.graph.node, sizes) > MOST_NODES:
        raise ReadError(f"its functions stand for more than {MOST_NODES:,} nodes")


def _called(nodes: Any) -> Iterator[tuple[str, str]]:
    """Domain and type of the nodes, and of those in their bodies."""
    for node in nodes:
        yield node.domain, node.op_type
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _called(body.node)


def _spread(nodes: Any, sizes: Mapping[tuple[str, str], int]) -> int:
    """How many nodes these are, with functions of so many nodes in place of their calls."""
    return sum(sizes.get(key, 1) for key in _called(nodes))


def _joined(graph: Any, around: ChainMap[str, int] | None = None) -> int:
    """Elements of all vectors that the graph and its bodies join: a vector joined to itself again
    and again is few nodes and no end of content. One of unknown length is as long as what it is
    made of; `around` has the lengths of vectors outside the body."""
    lengths = ChainMap(_lengths(graph), *(around.maps if around else ()))
    joined = 0
    for node in graph.node:
        if node.op_type in CARRIERS:
            joins = node.op_type == "Concat"
            read = [lengths.get(value, MOST_DIMENSIONS) for value in node.input]
            length = sum(read) if joins else max(read, default=0)
            made = [lengths.setdefault(value, length) for value in node.output]
            joined += sum(made) if joins else 0
        for attribute in node.attribute:
            bodies = (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else []))
            joined += sum(_joined(body, lengths) for body in bodies)
    return joined


def _lengths(graph: Any) -> dict[str, int]:
    """Of all values of known shape that are vectors; 0 of those that are none."""
    shapes = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.type.tensor_type.HasField("shape"):
            known = (d.dim_value if d.HasField("dim_value") else -1 for d in _dims(value))
            shapes.setdefault(value.name, list(known))
    vectors = {name: shape[0] if len(shape) == 1 else 0 for name, shape in shapes.items()}
    return {name: length for name, length in vectors.items() if length >= 0}


def _check_ranks(graph: Any) -> None:
    """A long vector in place of a shape makes a value of as many dimensions as it has elements."""
    for value in (*graph.input, *graph.value_info, *graph.output):
        if (rank := len(value.type.tensor_type.shape.dim)) > MOST_DIMENSIONS:
            raise ReadError(
                f"value {value.name!r}: has {rank} dimensions, more than {MOST_DIMENSIONS}"
            )


def _forget_weights(graph: Any) -> None:
    """Placement needs sizes only, and shape inference would copy the content twice.

    Raises:
        ReadError: a size that no graph can have, which shape inference might try to follow.
    """
    for tensor in graph.initializer:
        size = tensor_info(tensor).bytes
        if size > BYTES_LIMIT:
            raise ReadError(f"tensor {tensor.name!r}: is larger than 2^53 bytes")
        if size > CONSTANT_LIMIT:
            for field in ("raw_data", "float_data", "double_data", "int32_data", "int64_data"):
                tensor.ClearField(field)


def _fix_dims(graph: Any, dims: Mapping[str, int]) -> list[str]:
    """Give every dimension of the inputs a number."""
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    symbols = {d.dim_param: 1 for value in inputs for d in _dims(value) if d.dim_param}
    _check_dims(dims, symbols)
    for value in (*graph.input, *graph.value_info, *graph.output):
        for dim in _dims(value):
            if dim.dim_param in symbols:
                dim.dim_value = dims.get(dim.dim_param, 1)
    taken = sorted(symbols.keys() - dims.keys())
    warnings = [
        f"dimension {name!r} is taken as 1; --dim NAME=SIZE (in Python: dims) gives it a size"
        for name in taken
    ]
    for value in inputs:
        open_dims = [d for d in _dims(value) if d.dim_value <= 0]
        for dim in open_dims:
            dim.dim_value = 1
        if open_dims:
            warnings.append(f"input {value.name!r}: dimensions without a size are taken as 1")
    return warnings


def _dims(value: Any) -> Iterator[Any]:
    yield from value.type.tensor_type.shape.dim


def _check_dims(dims: Mapping[str, int], symbols: Mapping[str, int]) -> None:
    for name, size in dims.items():
        if name not in symbols:
            hint = nearest(name, symbols) if symbols else "; it has no symbolic dimensions"
            raise ReadError(f"dims: the model has no dimension {name!r}{hint}")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= 2**31:
            raise ReadError(f"dims: {name!r} must be a whole number from 1 to 2^31, got {size!r}")


def _unknown(graph: Any) -> list[str]:
    """A warning of dimensions that only the data will tell."""
    names = [
        value.name
        for value in (*graph.value_info, *graph.output)
        if any(not d.HasField("dim_value") or d.dim_value < 0 for d in _dims(value))
    ]
    if not names:
        return []
    shown = ", ".join(map(repr, names[:3])) + (", ..." if len(names) > 3 else "")
    have = "1 value has" if len(names) == 1 else f"{len(names)} values have"
    return [f"{have} dimensions that depend on the data, taken as 1: {shown}"]
