"""Values of an ONNX model that its shapes alone decide, and the shapes that follow from them.

onnx's own inference follows shape arithmetic only part of the way; here every op of it is run.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

LIMIT = 1024
"""Most elements of a value that is computed: shapes are small."""

# fmt: off
ARITHMETIC = {
    "Abs", "Add", "And", "Cast", "Ceil", "Concat", "ConstantOfShape", "Div", "Equal", "Expand",
    "Floor", "Gather", "Greater", "Identity", "Less", "Max", "Min", "Mod", "Mul", "Neg", "Not",
    "Or", "Range", "ReduceProd", "ReduceSum", "Reshape", "Slice", "Split", "Sqrt", "Squeeze",
    "Sub", "Transpose", "Unsqueeze", "Where",
}
# fmt: on
"""Ops that models compute shapes with."""


def known_values(model: Any) -> set[str]:
    """Names of the values that are known without any input's data, of an inferred model.

    Shapes that follow from them are added to the model's `value_info`.
    """
    walk = _Walk(model)
    for node in model.graph.node:
        walk.visit(node)
    return walk.found


class _Walk:
    """One pass over the nodes, producers before consumers."""

    def __init__(self, model: Any) -> None:
        graph = model.graph
        self.graph = graph
        self.opsets = list(model.opset_import)
        self.stated = {v.name: v for v in (*graph.input, *graph.value_info, *graph.output)}
        self.types = {name: value.type for name, value in self.stated.items()}
        self.values: dict[str, Any] = {}
        for tensor in graph.initializer:
            self.types[tensor.name] = _type(tensor)
            if _is_small(tensor.dims) and not tensor.external_data:
                self.values[tensor.name] = tensor
        self.found: set[str] = set()

    def visit(self, node: Any) -> None:
        """Find out the shapes and, where they do not depend on data, the values that it makes."""
        read = [name for name in node.input if name]
        if not all(map(self._has_shape, node.output)):
            self._infer(node, read)
        with contextlib.suppress(Exception):  # what cannot be computed stays unknown
            self._compute(node, read)

    def _compute(self, node: Any, read: list[str]) -> None:
        if any(map(_is_external, node.attribute)):
            return
        if node.op_type == "Constant":
            self._run(node, {})
        elif node.op_type in ("Shape", "Size") and self._has_shape(read[0]):
            self._run(node, {read[0]: np.broadcast_to(np.float32(0), self._shape(read[0]))})
        elif node.op_type in ARITHMETIC and self._is_small_work(node, read):
            self._run(node, {name: _array(self.values[name]) for name in read})

    def _is_small_work(self, node: Any, read: list[str]) -> bool:
        """Whether all it reads is known, and what it makes of that is small, whatever the model
        states of it."""
        data = {name: self.values[name] for name in read if name in self.values}
        if not read or len(data) < len(set(read)):
            return False
        made = self._outputs(node, {name: _type(value) for name, value in data.items()}, data)
        return all(
            _has_numbers(kind) and _is_small(d.dim_value for d in kind.tensor_type.shape.dim)
            for kind in made.values()
        )

    def _has_shape(self, name: str) -> bool:
        """Whether every dimension of the value has a number."""
        return not name or (name in self.types and _has_numbers(self.types[name]))

    def _shape(self, name: str) -> tuple[int, ...]:
        return tuple(dim.dim_value for dim in self.types[name].tensor_type.shape.dim)

    def _infer(self, node: Any, read: list[str]) -> None:
        types = {name: self.types[name] for name in read if name in self.types}
        data = {name: self.values[name] for name in read if name in self.values}
        with contextlib.suppress(Exception):  # it stays unknown, and is said so where it matters
            for name, kind in self._outputs(node, types, data).items():
                self.types[name] = kind
                if self._has_shape(name):
                    self._state(name, kind)

    def _outputs(self, node: Any, types: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
        """The types of what it makes of values of these types, some of which are known."""
        import onnx.shape_inference

        schema = onnx.defs.get_schema(node.op_type, self._version(node.domain), node.domain)
        found: dict[str, Any] = onnx.shape_inference.infer_node_outputs(
            schema, node, types, data, opset_imports=self.opsets
        )
        return found

    def _version(self, domain: str) -> int:
        return next(int(opset.version) for opset in self.opsets if opset.domain == domain)

    def _state(self, name: str, kind: Any) -> None:
        """Write a shape into the model."""
        if name not in self.stated:
            self.stated[name] = self.graph.value_info.add(name=name)
        self.stated[name].type.CopyFrom(kind)

    def _run(self, node: Any, feeds: Mapping[str, Any]) -> None:
        """Compute what the node makes, if that is small."""
        import onnx
        from onnx.reference import ReferenceEvaluator

        outputs = [name for name in node.output if name]
        if not all(self._has_shape(name) and _is_small(self._shape(name)) for name in outputs):
            return
        arguments = [onnx.ValueInfoProto(name=name) for name in (*feeds, *outputs)]
        graph = onnx.helper.make_graph([node], "", arguments[: len(feeds)], arguments[len(feeds) :])
        opsets = {opset.domain: opset.version for opset in self.opsets}
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(graph, opsets=opsets).run(None, dict(feeds))
        for name, value in zip(outputs, results, strict=True):
            self.values[name] = onnx.numpy_helper.from_array(np.asarray(value), name)
            self.found.add(name)


def _is_external(attribute: Any) -> bool:
    """Whether a tensor of the attribute lies in another file, which would be looked for in the
    current directory."""
    sparse = attribute.sparse_tensor
    return any(t.external_data for t in (attribute.t, sparse.values, sparse.indices))


def _has_numbers(kind: Any) -> bool:
    """Whether every dimension of a type has a number."""
    tensor = kind.tensor_type
    return tensor.HasField("shape") and all(d.HasField("dim_value") for d in tensor.shape.dim)


def _is_small(shape: Iterable[int]) -> bool:
    return math.prod(shape) <= LIMIT


def _type(tensor: Any) -> Any:
    import onnx

    return onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))


def _array(tensor: Any) -> Any:
    import onnx

    return onnx.numpy_helper.to_array(tensor)
