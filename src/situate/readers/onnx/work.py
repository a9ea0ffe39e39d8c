"""Arithmetic and memory traffic of ONNX ops, from the shapes of their inputs and outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any

from situate.readers.onnx.attention import attention
from situate.readers.onnx.shapes import Info, Shapes

Infos = Sequence[Info]

FREE = {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Shape", "Size"}
"""Ops that touch no data: views, and what only looks at a shape."""

PARTIAL = {"Gather", "GatherElements", "GatherND", "Slice"}
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
"""Products that hand on another type than they multiply: which input is of the latter."""

UNKNOWN = Info((0,), "float32")


def work(node: Any, shapes: Shapes) -> tuple[int, int]:
    """FLOPs and bytes of traffic of one run of the node; bodies of control flow count as run.

    `If` takes its costlier branch, `Scan` the length of its first scanned input, `Loop` counts as
    one iteration.
    """
    inputs = [shapes.get(name) or UNKNOWN for name in node.input]
    outputs = [shapes.get(name) or UNKNOWN for name in node.output if name]
    if bodies := list(bodies_of(node)):
        return _control(node, [_body(body, shapes) for body in bodies], inputs)
    if node.op_type in FREE:
        return 0, 0
    count = _FLOPS.get(node.op_type, _elementwise)
    try:
        flops = count(node, inputs, outputs)
    except (IndexError, ValueError):  # fewer inputs or dimensions than such an op has
        flops = _elementwise(node, inputs, outputs)
    return flops, _traffic(node, inputs, outputs)


def dtype(node: Any, shapes: Shapes) -> str:
    """The type a node computes in: that of a quantised product's factors, else of its output."""
    place = FACTOR.get(node.op_type, len(node.input))
    names = (*node.input[place:][:1], *node.output)
    return next((info.dtype for name in names if name and (info := shapes.get(name))), "float32")


def bodies_of(node: Any) -> Iterator[Any]:
    """The graphs in the node's attributes."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _body(body: Any, shapes: Shapes) -> tuple[int, int]:
    inner = Shapes.of(body, shapes)
    pairs = [work(node, inner) for node in body.node if node.op_type != "Constant"]
    return sum(flops for flops, _ in pairs), sum(traffic for _, traffic in pairs)


def _control(node: Any, bodies: list[tuple[int, int]], inputs: Infos) -> tuple[int, int]:
    if node.op_type == "Scan":
        scanned = _attribute(node, "num_scan_inputs", 1)
        axes = chain(_attributes(node, "scan_input_axes"), repeat(0))
        steps = (info.shape[axis:][:1] for info, axis in zip(inputs[-scanned:], axes, strict=False))
        times = next((size for sizes in steps for size in sizes), 1)
        return bodies[0][0] * times, bodies[0][1] * times
    return max(bodies)


def _traffic(node: Any, inputs: Infos, outputs: Infos) -> int:
    written = sum(info.bytes for info in outputs)
    if node.op_type in PARTIAL and inputs:
        return 2 * written + sum(info.bytes for info in inputs[1:])
    return written + sum(info.bytes for info in inputs)


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
    summed = -2 if _attribute(node, "transA", 0) else -1
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
        named = info.shape if start < 0 else info.shape[:start] + info.shape[start + extra :]
        if start >= 0:
            sizes.setdefault("...", math.prod(info.shape[start : start + extra]))
        sizes |= dict(zip(letters, named, strict=False))
    return 2 * math.prod(sizes.values())


def _recurrent(_node: Any, inputs: Infos, _outputs: Infos) -> int:
    """Every step of every sequence meets all of W and of R."""
    return 2 * math.prod(inputs[0].shape[:2]) * (inputs[1].elements + inputs[2].elements)


def _attribute(node: Any, name: str, default: int) -> int:
    return next((int(a.i) for a in node.attribute if a.name == name), default)


def _attributes(node: Any, name: str) -> Sequence[int]:
    """Of a list of numbers; empty where the node does not have it."""
    return next((a.ints for a in node.attribute if a.name == name), ())


_FLOPS: dict[str, Callable[[Any, Infos, Infos], int]] = {
    "Conv": _convolution,
    "FusedConv": _convolution,
    "ConvInteger": _convolution,
    "DeformConv": _convolution,
    "QLinearConv": _quantised_convolution,
    "ConvTranspose": _transposed_convolution,
    "MatMul": _product,
    "FusedMatMul": _product,
    "MatMulInteger": _product,
    "MatMulNBits": _product,
    "QLinearMatMul": _product,
    "MatMulIntegerToFloat": _product,
    "DynamicQuantizeMatMul": _product,
    "MatMulBnb4": _product,
    "QGemm": _product,
    "GemmFloat8": _product,
    "Gemm": _product,
    "FusedGemm": _product,
    "Einsum": _einsum,
    "Attention": attention,
    "QAttention": attention,
    "MultiHeadAttention": attention,
    "GroupQueryAttention": attention,
    "LSTM": _recurrent,
    "DynamicQuantizeLSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
    "MaxPool": _pool,
    "AveragePool": _pool,
    "LpPool": _pool,
    "GlobalAveragePool": _reduction,
    "GlobalLpPool": _reduction,
    "GlobalMaxPool": _reduction,
    "ReduceL1": _reduction,
    "ReduceL2": _reduction,
    "ReduceLogSum": _reduction,
    "ReduceLogSumExp": _reduction,
    "ReduceMax": _reduction,
    "ReduceMean": _reduction,
    "ReduceMin": _reduction,
    "ReduceProd": _reduction,
    "ReduceSum": _reduction,
    "ReduceSumSquare": _reduction,
    "ArgMax": _reduction,
    "ArgMin": _reduction,
}
