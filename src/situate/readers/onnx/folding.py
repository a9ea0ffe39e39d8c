"""Nodes that follow from shapes and constants alone are run while the model is read.

Models compute shapes with them (`Shape`, `Gather`, `Concat`, `Reshape`) and decide by them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from situate.readers.onnx.types import shape_of, sizes_of

LIMIT = 1024
"""Most elements of a value that is computed: shapes are small."""

# fmt: off
ARITHMETIC = {
    "Abs", "Add", "And", "Cast", "CastLike", "Ceil", "Concat", "ConstantOfShape", "CumSum", "Div",
    "Equal", "Expand", "Flatten", "Floor", "Gather", "GatherElements", "GatherND", "Greater",
    "GreaterOrEqual", "Identity", "IsInf", "IsNaN", "Less", "LessOrEqual", "Max", "Min", "Mod",
    "Mul", "Neg", "NonZero", "Not", "Or", "Pow", "Range", "ReduceMax", "ReduceMin", "ReduceProd",
    "ReduceSum", "Reshape", "Round", "ScatterElements", "ScatterND", "Sign", "Slice", "Split",
    "Sqrt", "Squeeze", "Sub", "Tile", "Transpose", "Trilu", "Unsqueeze", "Where", "Xor",
}
# fmt: on
"""Ops that models compute shapes with."""


def folded(
    node: Any,
    opsets: Mapping[str, int],
    kinds: Mapping[str, Any],
    values: Mapping[str, Any],
    outputs: Mapping[str, Any],
) -> list[Any]:
    """The outputs of a node, as tensors in order; none if they depend on data or are large.

    Args:
        opsets: version of each domain.
        kinds: types of the inputs.
        values: contents of the inputs, if known.
        outputs: inferred types of the outputs; types that a model states may be wrong.
    """
    if node.domain or any(map(_is_elsewhere, node.attribute)):
        return []
    feeds = _feeds(node, kinds, values)
    if feeds is None or not _is_small_work(node, feeds, outputs):
        return []
    with contextlib.suppress(Exception):  # what cannot be computed stays unknown
        return _run(node, feeds, opsets)
    return []


def _feeds(node: Any, kinds: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Arrays for the node's inputs; None if it needs data."""
    if node.op_type == "Constant":
        return {}
    if node.op_type in ("Shape", "Size") and node.input:
        return {node.input[0]: np.broadcast_to(np.float32(0), sizes_of(kinds[node.input[0]]))}
    inputs = [name for name in node.input if name]
    if node.op_type not in ARITHMETIC or not inputs or any(values.get(n) is None for n in inputs):
        return None
    return {name: _array(values[name]) for name in inputs}


def _is_small_work(node: Any, feeds: Mapping[str, Any], outputs: Mapping[str, Any]) -> bool:
    if node.op_type == "NonZero":  # makes at most as many columns as it reads elements
        return True
    shapes = [shape_of(outputs.get(name)) for name in node.output if name]
    return all(s is not None and None not in s and is_small(s) for s in shapes)


def _run(node: Any, feeds: Mapping[str, Any], opsets: Mapping[str, int]) -> list[Any]:
    import onnx
    from onnx.reference import ReferenceEvaluator

    outputs = [name for name in node.output if name]
    arguments = [onnx.ValueInfoProto(name=name) for name in (*feeds, *outputs)]
    graph = onnx.helper.make_graph([node], "", arguments[: len(feeds)], arguments[len(feeds) :])
    with np.errstate(all="ignore"):
        results = ReferenceEvaluator(graph, opsets=dict(opsets)).run(None, dict(feeds))
    pairs = zip(outputs, results, strict=True)
    return [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in pairs]


def _is_elsewhere(attribute: Any) -> bool:
    """True if a tensor of the attribute is in another file, which onnx would look for in the
    current directory."""
    sparse = attribute.sparse_tensor
    return any(t.external_data for t in (attribute.t, sparse.values, sparse.indices))


def is_small(shape: Iterable[Any]) -> bool:
    """True if a value of this shape is small enough to compute and keep."""
    return bool(math.prod(shape) <= LIMIT)


def _array(tensor: Any) -> Any:
    import onnx

    return onnx.numpy_helper.to_array(tensor)
