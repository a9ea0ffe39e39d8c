"""Operators of ONNX Runtime that equal a standard operator on some of their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from situate.readers.onnx.operators.operator_call import Call
from situate.readers.onnx.types import Shape, element, sizes_of, tensor


@dataclass(frozen=True)
class Twin:
    """A standard operator, the numbers of its inputs, and the version with the same attributes."""

    kind: str
    places: Sequence[int] = (0,)
    version: int = 22
    channels_last: bool = False
    """True if it always is so; else the attribute of this name says it."""


TWINS = {
    "ConvTransposeWithDynamicPads": Twin("ConvTranspose", (0, 1)),
    "DynamicQuantizeLSTM": Twin("LSTM", (0, 1, 2)),
    "DynamicQuantizeMatMul": Twin("MatMul", (0, 1)),
    "FusedConv": Twin("Conv", (0, 1)),
    "FusedGemm": Twin("Gemm", (0, 1)),
    "FusedMatMul": Twin("MatMul", (0, 1)),
    "FusedMatMulActivation": Twin("MatMul", (0, 1)),
    "GatherND": Twin("GatherND", (0, 1)),
    "GemmFastGelu": Twin("MatMul", (0, 1)),
    "GemmFloat8": Twin("Gemm", (0, 1)),
    "GridSample": Twin("GridSample", (0, 1)),
    "MatMulInteger16": Twin("MatMul", (0, 1)),
    "MatMulIntegerToFloat": Twin("MatMul", (0, 1)),
    "MaxpoolWithMask": Twin("MaxPool"),
    "MulInteger": Twin("Mul", (0, 2)),
    "NhwcConv": Twin("Conv", (0, 1), channels_last=True),
    "NhwcFusedConv": Twin("Conv", (0, 1), channels_last=True),
    "NhwcMaxPool": Twin("MaxPool", channels_last=True),
    "Pad": Twin("Pad", (0, 1)),
    "QGemm": Twin("Gemm", (0, 3)),
    "QLinearAdd": Twin("Add", (0, 3)),
    "QLinearAveragePool": Twin("AveragePool"),
    "QLinearConv": Twin("Conv", (0, 3)),
    "QLinearGlobalAveragePool": Twin("GlobalAveragePool"),
    "QLinearMul": Twin("Mul", (0, 3)),
    "QLinearReduceMean": Twin("ReduceMean", version=13),
    "QLinearWhere": Twin("Where", (0, 1, 4)),
    "QOrderedMatMul": Twin("MatMul", (0, 2)),
    "Range": Twin("Range", (0, 1, 2)),
    "ReduceSumInteger": Twin("ReduceSum", version=11),
    "TransposeMatMul": Twin("MatMul", (0, 1)),
}


def twin_shapes(call: Call) -> list[Shape]:
    """Output shapes of a node with a twin; an exception if they cannot be inferred."""
    twin = TWINS.get(call.node.op_type)
    if call.node.op_type == "QLinearConcat":
        # Inputs: scale and zero point of the output, then three of each part: tensor, scale, zero
        # point.
        twin = Twin("Concat", range(2, len(call.kinds), 3))
    if twin is None:
        return []
    shapes = [call.shape(place) for place in twin.places]
    last = twin.channels_last or bool(call.number("channels_last"))
    if last:
        # (n, ..., channels) -> (n, channels, ...), as the standard operator takes it.
        shapes[0] = (shapes[0][0], shapes[0][-1], *shapes[0][1:-1])
    if twin.kind == "MatMul":
        shapes = [_transposed(call, shape, side) for shape, side in zip(shapes, "AB", strict=True)]
    kinds = [tensor(_number(call.element(p)), s) for p, s in zip(twin.places, shapes, strict=True)]
    types = _infer(call, twin, kinds)
    return [(s[0], *s[2:], s[1]) for s in types] if last else types


def _transposed(call: Call, shape: Shape, side: str) -> Shape:
    """The shape of a factor as the product uses it."""
    if call.number(f"transBatch{side}"):
        shape = (*shape[1:-1], shape[0], shape[-1])
    return (*shape[:-2], shape[-1], shape[-2]) if call.number(f"trans{side}") else shape


def _number(element: int) -> int:
    """The element type of a standard operator: real numbers in place of quantised ones."""
    import onnx

    kinds = onnx.TensorProto
    return element if element in (kinds.INT32, kinds.INT64, kinds.BOOL) else int(kinds.FLOAT)


def _infer(call: Call, twin: Twin, kinds: Sequence[Any]) -> list[Shape]:
    import onnx.shape_inference

    schema = onnx.defs.get_schema(twin.kind, twin.version)
    names = [f"i{place}" for place in range(len(kinds))]
    node = onnx.helper.make_node(twin.kind, names, [f"o{i}" for i in range(len(call.node.output))])
    node.attribute.extend(a for a in call.node.attribute if a.name in schema.attributes)
    contents = zip(names, (call.contents[place] for place in twin.places), strict=True)
    types = dict(zip(names, kinds, strict=True))
    data = {name: content for name, content in contents if content is not None}
    opsets = [onnx.helper.make_opsetid("", twin.version)]
    inferred = onnx.shape_inference.infer_node_outputs(
        schema, node, types, data, opset_imports=opsets
    )
    return [sizes_of(inferred[name]) for name in node.output if _is_known(inferred.get(name))]


def _is_known(kind: Any) -> bool:
    dims = kind.tensor_type.shape.dim if kind is not None else ()
    return element(kind) != 0 and all(dim.HasField("dim_value") for dim in dims)
