"""Arithmetic and memory traffic of ONNX ops, from the shapes of their inputs and outputs."""

from __future__ import annotations

from typing import Any

from situate.readers.onnx.loops import trips
from situate.readers.onnx.names import bodies_of
from situate.readers.onnx.operators.flops import Infos, flops
from situate.readers.onnx.shapes import Info, Shapes

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
        return 2 * output_bytes + sum(info.bytes for info in inputs[1:])
    return output_bytes + sum(info.bytes for info in inputs)
