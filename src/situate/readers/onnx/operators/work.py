"""FLOPs, traffic and dtypes of ONNX ops."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from situate.readers.onnx.loops import trips
from situate.readers.onnx.names import bodies_of
from situate.readers.onnx.types import Info, Shape, Shapes

# Arithmetic and memory traffic of ONNX ops, from the shapes of their inputs and outputs.
FREE = {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Shape", "Size"}
"""Ops that touch no data: views, and ops that only read shapes."""

PARTIAL = {"Gather", "GatherBlockQuantized", "GatherElements", "GatherND", "Slice"}
"""Ops that read no more of their first input than they write."""

FACTOR = {
    "ConvInteger": 0,
    "DynamicQuantizeMatMul": 1,
    "GemmFloat8": 0,
    "MatMulInteger": 0,
    "MatMulIntegerToFloat": 0,
    "QGemm": 0,
    "QLinearConv": 0,
    "QLinearMatMul": 0,
}
"""The input with the factors' type, for products whose output type differs."""

UNKNOWN = Info((0,), "float32")

# Arithmetic of ONNX ops by formula, from the shapes of their inputs and outputs.
Infos = Sequence[Info]


def work(node: Any, shapes: Shapes) -> tuple[int, int]:
    """FLOPs and bytes of traffic of one run of the node; bodies of control flow count as they run.

    `If` has the work of its costlier branch, a loop that of its noted number of iterations.
    """
    inputs = [shapes.get(name) or UNKNOWN for name in node.input]
    outputs = [shapes.get(name) or UNKNOWN for name in node.output if name]
    if bodies := list(bodies_of(node)):
        count, traffic = max(_body(body, shapes) for body in bodies)
        return count * trips(node), traffic * trips(node)
    if node.op_type in FREE:
        return 0, 0
    return flops(node, inputs, outputs), _traffic(node, inputs, outputs)


def dtype(node: Any, shapes: Shapes) -> str:
    """The type a node computes in: its output's, or its factors' for a quantised product."""
    place = FACTOR.get(node.op_type, len(node.input))
    names = (*node.input[place:][:1], *node.output)
    return next((info.dtype for name in names if name and (info := shapes.get(name))), "float32")


def _body(body: Any, shapes: Shapes) -> tuple[int, int]:
    inner = Shapes.of(body, shapes)
    pairs = [work(node, inner) for node in body.node if node.op_type != "Constant"]
    return sum(count for count, _ in pairs), sum(traffic for _, traffic in pairs)


def _traffic(node: Any, inputs: Infos, outputs: Infos) -> int:
    output_bytes = sum(info.bytes for info in outputs)
    if node.op_type in PARTIAL and inputs:
        # The rows that are read are as many as those that are written.
        return 2 * output_bytes + sum(info.bytes for info in inputs[1:])
    return output_bytes + sum(info.bytes for info in inputs)


def flops(node: Any, inputs: Infos, outputs: Infos) -> int:
    """Operations of one run of the node."""
    count = _FLOPS.get(node.op_type, _elementwise)
    try:
        return count(node, inputs, outputs)
    except (IndexError, ValueError):  # fewer inputs or dimensions than such an op has
        return _elementwise(node, inputs, outputs)


def _elementwise(_node: Any, _inputs: Infos, outputs: Infos) -> int:
    return outputs[0].elements if outputs else 0


def _reduction(_node: Any, inputs: Infos, _outputs: Infos) -> int:
    return inputs[0].elements


def _convolution(_node: Any, inputs: Infos, outputs: Infos) -> int:
    """Two per output element and weight that goes into it."""
    # Weights are (out channels, in channels / groups, *kernel).
    return 2 * outputs[0].elements * math.prod(inputs[1].shape[1:])


def _quantised_convolution(_node: Any, inputs: Infos, outputs: Infos) -> int:
    # A scale and a zero point follow the image, so the weights are the fourth input.
    return 2 * outputs[0].elements * math.prod(inputs[3].shape[1:])


def _transposed_convolution(_node: Any, inputs: Infos, _outputs: Infos) -> int:
    # Weights are (in channels, out channels / groups, *kernel): each input element meets one slice.
    return 2 * inputs[0].elements * math.prod(inputs[1].shape[1:])


def _product(node: Any, inputs: Infos, outputs: Infos) -> int:
    """Two per output element and element of the dimension summed over."""
    summed = -1
    if _attribute(node, "transA", 0):
        summed = 0 if _attribute(node, "transBatchA", 0) else -2
    return 2 * outputs[0].elements * inputs[0].shape[summed]


def _pool(node: Any, _inputs: Infos, outputs: Infos) -> int:
    return outputs[0].elements * math.prod(_attributes(node, "kernel_shape"))


def _einsum(node: Any, inputs: Infos, _outputs: Infos) -> int:
    """Two per point of the space all letters span; a broadcast `...` counts as it stands in the
    first operand that has it."""
    text = next((a.s for a in node.attribute if a.name == "equation"), b"")
    equation = text.decode(errors="replace").replace(" ", "")
    sizes: dict[str, int] = {}
    for term, info in zip(equation.partition("->")[0].split(","), inputs, strict=False):
        # An ellipsis stands for the axes that the letters leave over.
        letters = term.replace("...", "")
        extra = len(info.shape) - len(letters)
        start = term.find("...")
        axes = info.shape if start < 0 else info.shape[:start] + info.shape[start + extra :]
        if start >= 0:
            sizes.setdefault("...", math.prod(info.shape[start : start + extra]))
        sizes |= dict(zip(letters, axes, strict=False))
    return 2 * math.prod(sizes.values())


def _recurrent(_node: Any, inputs: Infos, _outputs: Infos) -> int:
    """Every step of every sequence meets all of W and of R."""
    # W and R are (directions, gates, input size) and (directions, gates, state size).
    return 2 * math.prod(inputs[0].shape[:2]) * (inputs[1].elements + inputs[2].elements)


def _experts(node: Any, inputs: Infos, _outputs: Infos) -> int:
    """Each token meets the weights of `k` experts; a byte of them may hold several numbers."""
    quantised = node.op_type == "QMoE"
    # Behind tokens and router come three layers, each of weights and bias; QMoE adds scales.
    weights = [info for info in inputs[2 :: 3 if quantised else 2][:3] if len(info.shape) == 3]
    packed = 8 // max(_attribute(node, "expert_weight_bits", 4), 1) if quantised else 1
    per_token = sum(math.prod(info.shape[1:]) * packed for info in weights)
    return 2 * math.prod(inputs[0].shape[:-1]) * _attribute(node, "k", 1) * per_token


def _attribute(node: Any, name: str, default: int) -> int:
    return next((int(a.i) for a in node.attribute if a.name == name), default)


def _attributes(node: Any, name: str) -> Sequence[int]:
    """The values of a list of numbers; empty if the node lacks it."""
    return next((a.ints for a in node.attribute if a.name == name), ())


# Arithmetic of attention operators, whose queries, keys and values may be packed in one input.
PAST = {
    "Attention": 4,
    "DecoderMaskedMultiHeadAttention": 5,
    "DecoderMaskedSelfAttention": 4,
    "GroupQueryAttention": 3,
    "MultiHeadAttention": 6,
    "QAttention": 8,
}
"""The input with the past keys, (..., positions, width)."""

PROJECTING = {"Attention", "DecoderMaskedSelfAttention", "QAttention"}
"""Operators of `com.microsoft` with projection weights in place of keys."""


def _attention(node: Any, inputs: Sequence[Info], outputs: Sequence[Info]) -> int:
    """Scores of queries and all keys, and sums of values: over (..., positions, width) tensors."""
    query, key, past = (_shape(inputs, place) for place in (0, 1, PAST[node.op_type]))
    projections = 0
    if node.domain == "com.microsoft" and node.op_type in PROJECTING:
        projections, key = 2 * math.prod(query) * key[-1], ()
    result = outputs[0].elements
    scores = math.prod(query) if key else result
    keys = _positions(key or query) + (past[-2] if past else 0)
    # A multiply-add for each number of a query and key, and of a score and value.
    return projections + 2 * keys * (scores + result)


def _shape(inputs: Sequence[Info], place: int) -> Shape:
    """The shape of an input; empty if it is left out."""
    shape = inputs[place].shape if place < len(inputs) else ()
    return shape if len(shape) > 1 else ()


def _positions(shape: Shape) -> int:
    """Positions of a shape (batch, positions, heads, 2 or 3, width), or (..., positions, width)."""
    return shape[1] if len(shape) == 5 else shape[-2]


_FLOPS: dict[str, Callable[[Any, Infos, Infos], int]] = {
    "ArgMax": _reduction,
    "ArgMin": _reduction,
    "Attention": _attention,
    "AveragePool": _pool,
    "Conv": _convolution,
    "ConvInteger": _convolution,
    "ConvTranspose": _transposed_convolution,
    "ConvTransposeWithDynamicPads": _transposed_convolution,
    "DecoderMaskedMultiHeadAttention": _attention,
    "DecoderMaskedSelfAttention": _attention,
    "DeformConv": _convolution,
    "DynamicQuantizeLSTM": _recurrent,
    "DynamicQuantizeMatMul": _product,
    "Einsum": _einsum,
    "FusedConv": _convolution,
    "FusedGemm": _product,
    "FusedMatMul": _product,
    "FusedMatMulActivation": _product,
    "GRU": _recurrent,
    "Gemm": _product,
    "GemmFastGelu": _product,
    "GemmFloat8": _product,
    "GlobalAveragePool": _reduction,
    "GlobalLpPool": _reduction,
    "GlobalMaxPool": _reduction,
    "GroupQueryAttention": _attention,
    "LSTM": _recurrent,
    "LpPool": _pool,
    "MatMul": _product,
    "MatMulBnb4": _product,
    "MatMulInteger": _product,
    "MatMulInteger16": _product,
    "MatMulIntegerToFloat": _product,
    "MatMulNBits": _product,
    "MaxPool": _pool,
    "MaxpoolWithMask": _pool,
    "MoE": _experts,
    "MultiHeadAttention": _attention,
    "NhwcConv": _convolution,
    "NhwcFusedConv": _convolution,
    "NhwcMaxPool": _pool,
    "QAttention": _attention,
    "QGemm": _product,
    "QLinearAveragePool": _pool,
    "QLinearConv": _quantised_convolution,
    "QLinearGlobalAveragePool": _reduction,
    "QLinearMatMul": _product,
    "QLinearReduceMean": _reduction,
    "QMoE": _experts,
    "QOrderedMatMul": _product,
    "RNN": _recurrent,
    "ReduceL1": _reduction,
    "ReduceL2": _reduction,
    "ReduceLogSum": _reduction,
    "ReduceLogSumExp": _reduction,
    "ReduceMax": _reduction,
    "ReduceMean": _reduction,
    "ReduceMin": _reduction,
    "ReduceProd": _reduction,
    "ReduceSum": _reduction,
    "ReduceSumInteger": _reduction,
    "ReduceSumSquare": _reduction,
    "TransposeMatMul": _product,
}
"""Formulas by operator; operators of ONNX Runtime have the formula of their standard twin."""
