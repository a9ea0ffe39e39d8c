"""Output types of operators unknown to onnx, most of them of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from situate.readers.onnx.operators.attention_shapes import grouped, multi_head, projected
from situate.readers.onnx.operators.classic import DOMAIN, classic_types
from situate.readers.onnx.operators.operator_call import Call
from situate.readers.onnx.operators.twins import twin_shapes
from situate.readers.onnx.shapes import Shape
from situate.readers.onnx.types import tensor

DOMAINS = {"", DOMAIN, "com.microsoft"}
"""ONNX Runtime keeps some of its operators in the standard domain."""

# fmt: off
LIKE = {
    "BiasAdd", "BiasDropout", "BiasGelu", "BiasSoftmax", "BitmaskDropout", "BitmaskBiasDropout",
    "DequantizeLinear", "FastGelu", "GatedAdd", "Gelu", "GroupNorm", "GroupNormalization",
    "Inverse", "MeanVarianceNormalization", "MoE",
    "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "QMoE", "QOrderedGelu",
    "QOrderedLayerNormalization", "QuantizeLinear", "QuantizeWithOrder", "QuickGelu",
    "RotaryEmbedding", "Trilu",
}
# fmt: on
"""Operators that make a value of their first input's shape."""

ELEMENTS: dict[str, tuple[int, ...]] = {
    "DequantizeLinear": (1,),
    "EmbedLayerNormalization": (2,),
    "GatherBlockQuantized": (2,),
    "MatMulIntegerToFloat": (2,),
    "QAttention": (3,),
    "QGemm": (8, 1),
    "QLinearConcat": (2,),
    "QLinearWhere": (1,),
    "QuantizeLinear": (2,),
}
"""The input with the element type of the first output, if it is not the first one."""

FIXED = {
    "MatMulInteger16": "INT32",
    "MulInteger": "INT32",
    "QuantizeLinear": "UINT8",
    "ReduceSumInteger": "INT32",
}
"""Element types of first outputs that no input has."""


def contrib_types(call: Call) -> list[Any]:
    """Types of the outputs in order, as far as known.

    Raises:
        Exception: the node lacks inputs or dimensions of such an operator.
    """
    node = call.node
    if node.domain not in DOMAINS:
        return []
    if node.domain == DOMAIN:
        return classic_types(call)
    rule = _RULES.get(node.op_type)
    if not call.has(0) and (rule or node.op_type in LIKE):
        raise LookupError("lacks its first input")
    shapes = rule(call) if rule else [call.shape(0)] if node.op_type in LIKE else twin_shapes(call)
    return [tensor(_element(call, place), shape) for place, shape in enumerate(shapes)]


def _element(call: Call, place: int) -> int:
    import onnx

    kind = call.node.op_type
    if kind == "GemmFloat8" and call.number("dtype"):
        return call.number("dtype")
    if kind == "EmbedLayerNormalization" and place == 1:
        return int(onnx.TensorProto.INT32)
    if kind in FIXED and not (kind in ELEMENTS and call.element(*ELEMENTS[kind])):
        return int(onnx.TensorProto.DataType.Value(FIXED[kind]))
    return call.element(*ELEMENTS.get(kind, (0,)))


def _normalised(call: Call) -> list[Shape]:
    """The result, means and deviations of rows, and the sum that was normalised."""
    shape = call.shape(0)
    rows = (*shape[:-1], 1)
    return [shape, rows, rows, shape]


def _embedded(call: Call) -> list[Shape]:
    ids, width = call.shape(0), call.shape(2)[1]
    return [(*ids, width), ids[:1], (*ids, width)]


def _gather_shapes(call: Call) -> list[Shape]:
    """Rows of a table with several numbers in a byte."""
    import onnx

    data, axis = list(call.shape(0)), call.number("gather_axis")
    if call.element(0) == onnx.TensorProto.UINT8:
        data[-1] *= 8 // call.number("bits", 4)
    return [(*data[:axis], *call.shape(1), *data[axis + 1 :])]


def _expanded(call: Call) -> list[Shape]:
    """With one more axis, if its place is a constant."""
    import onnx

    if not call.has(1) or call.contents[1] is None:
        return []
    shape = list(call.shape(0))
    axis = int(onnx.numpy_helper.to_array(call.contents[1]).reshape(()))
    shape.insert(axis + len(shape) + 1 if axis < 0 else axis, 1)
    return [tuple(shape)]


def _last(call: Call, size: int) -> list[Shape]:
    return [(*call.shape(0)[:-1], size)]


_RULES: dict[str, Callable[[Call], list[Shape]]] = {
    "Attention": lambda call: projected(call, 4),
    "BiasSplitGelu": lambda call: _last(call, call.shape(0)[-1] // 2),
    "CDist": lambda call: [(call.shape(0)[0], call.shape(1)[0])],
    "DecoderMaskedMultiHeadAttention": lambda call: multi_head(call, 5),
    "DecoderMaskedSelfAttention": lambda call: projected(call, 4),
    "EmbedLayerNormalization": _embedded,
    "ExpandDims": _expanded,
    "GatherBlockQuantized": _gather_shapes,
    "GroupQueryAttention": grouped,
    "MatMulBnb4": lambda call: _last(call, call.required("N")),
    "MatMulNBits": lambda call: _last(call, call.required("N")),
    "MultiHeadAttention": lambda call: multi_head(call, 6),
    "QAttention": lambda call: projected(call, 8),
    "SimplifiedLayerNormalization": lambda call: _normalised(call)[:2],
    "SkipGroupNorm": lambda call: [call.shape(0)] * 2,
    "SkipLayerNormalization": _normalised,
    "SkipSimplifiedLayerNormalization": _normalised,
}
"""Shapes of the outputs in order, by operator."""
