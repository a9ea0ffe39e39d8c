"""Output types of operators unknown to onnx, most of them of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from situate.readers.onnx.operators.operator_call import Call
from situate.readers.onnx.operators.twins import twin_shapes
from situate.readers.onnx.types import Shape, tensor


# Output shapes of the attention operators of ONNX Runtime.
def _projected(call: Call, past_place: int) -> list[Shape]:
    """Output shapes of `Attention` and `QAttention`: (batch, positions, width of values), (2,
    batch, heads, positions of past and present, width of a head)."""
    (batch, positions, _), weights = call.shape(0), call.shape(1)
    # By default, one weight matrix makes queries, keys and values of one width, side by side.
    widths = call.numbers("qkv_hidden_sizes") or [weights[1] // 3] * 3
    heads, past = call.required("num_heads"), call.shape(past_place)
    return [
        (batch, positions, widths[2]),
        (2, batch, heads, _present(call, past, positions), widths[0] // heads),
    ]


def _multi_head(call: Call, past_place: int) -> list[Shape]:
    """(batch, positions, width of values); keys and values of past and present, by head."""
    query, key, value = call.shape(0), call.shape(1), call.shape(2)
    heads = call.required("num_heads")
    batch, positions = query[:2]
    # Packed queries, keys and values: (batch, positions, heads, 3, width of a head).
    width = query[2] * query[4] if len(query) == 5 else query[2]
    values = width if not value else value[-1] * (heads if len(value) == 4 else 1)
    # (batch, heads, positions, width of a head) or (batch, positions, width).
    keys = positions if not key else key[2] if len(key) == 4 else key[1]
    present = batch, heads, _present(call, call.shape(past_place), keys)
    return [
        (batch, positions, values),
        (*present, width // heads),
        (*present, values // heads),
        (batch, heads, positions, present[2]),
    ]


def _grouped(call: Call) -> list[Shape]:
    """As `_multi_head`, with fewer heads of keys and values, and perhaps all three in one input."""
    (batch, positions, width), heads = call.shape(0), call.required("num_heads")
    fewer = call.required("kv_num_heads")
    # Without keys of its own, input 0 has the heads of queries, keys and values side by side.
    head = width // (heads if call.has(1) else heads + 2 * fewer)
    total = _present(call, call.shape(3), positions)
    present = (batch, fewer, total, head)
    return [(batch, positions, heads * head), present, present, (batch, heads, positions, total)]


def _present(call: Call, past: Shape, positions: int) -> int:
    """A shared buffer has room for all positions from the beginning."""
    before = past[-2] if past else 0
    shared = before and call.number("past_present_share_buffer")
    return before if shared else before + positions


# Output types of classic machine learning operators (`ai.onnx.ml`) that onnx does not infer.
DOMAIN = "ai.onnx.ml"
"""Domain of the operators of classic machine learning."""

WIDTHS: dict[str, Callable[[Call], int]] = {
    "FeatureVectorizer": lambda call: sum(call.numbers("inputdimensions")),
    "LinearRegressor": lambda call: call.number("targets", 1),
    "SVMRegressor": lambda call: 1,
    "TreeEnsembleRegressor": lambda call: call.required("n_targets"),
}
"""Outputs per row, by operator."""


def _classic_types(call: Call) -> list[Any]:
    """Types of the outputs in order; an empty list if unknown."""
    import onnx

    kinds, op = onnx.TensorProto, call.node.op_type
    if op in ("Imputer", "Normalizer", "Scaler"):
        same = call.element(0) if op == "Imputer" else kinds.FLOAT
        return [tensor(same, call.shape(0))]
    if op in WIDTHS:
        return [tensor(kinds.FLOAT, (_rows(call), WIDTHS[op](call)))]
    if op == "TreeEnsembleClassifier":
        words = _labels(call, "classlabels_strings")
        numbers = _labels(call, "classlabels_int64s")
        label = kinds.STRING if words else kinds.INT64
        scores = (_rows(call), words or numbers)
        return [tensor(label, scores[:1]), tensor(kinds.FLOAT, scores)]
    return []


def _rows(call: Call) -> int:
    """A vector is one row."""
    shape = call.shape(0)
    return shape[0] if len(shape) > 1 else 1


def _labels(call: Call, attribute: str) -> int:
    attributes = (a for a in call.node.attribute if a.name == attribute)
    return sum(len(a.ints) + len(a.strings) for a in attributes)


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
        return _classic_types(call)
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
    # The normalised sum of embeddings, the length of each sequence, and the sum itself.
    return [(*ids, width), ids[:1], (*ids, width)]


def _gather_shapes(call: Call) -> list[Shape]:
    """Rows of a table with several numbers in a byte."""
    import onnx

    data, axis = list(call.shape(0)), call.number("gather_axis")
    # A byte of uint8 packs two numbers of 4 bits; other types hold one number each.
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
    # A negative axis counts from the end of the result, which has one axis more.
    shape.insert(axis + len(shape) + 1 if axis < 0 else axis, 1)
    return [tuple(shape)]


def _last(call: Call, size: int) -> list[Shape]:
    return [(*call.shape(0)[:-1], size)]


_RULES: dict[str, Callable[[Call], list[Shape]]] = {
    "Attention": lambda call: _projected(call, 4),
    "BiasSplitGelu": lambda call: _last(call, call.shape(0)[-1] // 2),
    "CDist": lambda call: [(call.shape(0)[0], call.shape(1)[0])],
    "DecoderMaskedMultiHeadAttention": lambda call: _multi_head(call, 5),
    "DecoderMaskedSelfAttention": lambda call: _projected(call, 4),
    "EmbedLayerNormalization": _embedded,
    "ExpandDims": _expanded,
    "GatherBlockQuantized": _gather_shapes,
    "GroupQueryAttention": _grouped,
    "MatMulBnb4": lambda call: _last(call, call.required("N")),
    "MatMulNBits": lambda call: _last(call, call.required("N")),
    "MultiHeadAttention": lambda call: _multi_head(call, 6),
    "QAttention": lambda call: _projected(call, 8),
    "SimplifiedLayerNormalization": lambda call: _normalised(call)[:2],
    "SkipGroupNorm": lambda call: [call.shape(0)] * 2,
    "SkipLayerNormalization": _normalised,
    "SkipSimplifiedLayerNormalization": _normalised,
}
"""Shapes of the outputs in order, by operator."""
