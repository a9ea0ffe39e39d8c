"""Arithmetic of ONNX ops by formula, from the shapes of their inputs and outputs.

A multiplication and an addition are two operations. An op without a formula has one per output
element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from situate.readers.onnx.operators.attention import attention
from situate.readers.onnx.shapes import Info

Infos = Sequence[Info]


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
    return 2 * outputs[0].elements * math.prod(inputs[1].shape[1:])


def _quantised_convolution(_node: Any, inputs: Infos, outputs: Infos) -> int:
    return 2 * outputs[0].elements * math.prod(inputs[3].shape[1:])


def _transposed_convolution(_node: Any, inputs: Infos, _outputs: Infos) -> int:
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
    return 2 * math.prod(inputs[0].shape[:2]) * (inputs[1].elements + inputs[2].elements)


def _experts(node: Any, inputs: Infos, _outputs: Infos) -> int:
    """Each token meets the weights of `k` experts; a byte of them may hold several numbers."""
    quantised = node.op_type == "QMoE"
    weights = [info for info in inputs[2 :: 3 if quantised else 2][:3] if len(info.shape) == 3]
    packed = 8 // max(_attribute(node, "expert_weight_bits", 4), 1) if quantised else 1
    per_token = sum(math.prod(info.shape[1:]) * packed for info in weights)
    return 2 * math.prod(inputs[0].shape[:-1]) * _attribute(node, "k", 1) * per_token


def _attribute(node: Any, name: str, default: int) -> int:
    return next((int(a.i) for a in node.attribute if a.name == name), default)


def _attributes(node: Any, name: str) -> Sequence[int]:
    """The values of a list of numbers; empty if the node lacks it."""
    return next((a.ints for a in node.attribute if a.name == name), ())


_FLOPS: dict[str, Callable[[Any, Infos, Infos], int]] = {
    "ArgMax": _reduction,
    "ArgMin": _reduction,
    "Attention": attention,
    "AveragePool": _pool,
    "Conv": _convolution,
    "ConvInteger": _convolution,
    "ConvTranspose": _transposed_convolution,
    "ConvTransposeWithDynamicPads": _transposed_convolution,
    "DecoderMaskedMultiHeadAttention": attention,
    "DecoderMaskedSelfAttention": attention,
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
    "GroupQueryAttention": attention,
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
    "MultiHeadAttention": attention,
    "NhwcConv": _convolution,
    "NhwcFusedConv": _convolution,
    "NhwcMaxPool": _pool,
    "QAttention": attention,
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
