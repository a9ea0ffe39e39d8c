"""Small ONNX models."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def node(kind: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    """A node; inputs and outputs are names between spaces, `-` is one left out."""
    names = [["" if name == "-" else name for name in text.split()] for text in (inputs, outputs)]
    return helper.make_node(kind, *names, **attributes)


def value(name: str, shape: Any, kind: int = TensorProto.FLOAT) -> Any:
    """A tensor's name, type and shape; None has no shape."""
    return helper.make_tensor_value_info(name, kind, shape)


def weight(name: str, *shape: int) -> Any:
    """An initializer of float32 zeros."""
    return numpy_helper.from_array(np.zeros(shape, np.float32), name)


def whole(name: str, *numbers: int) -> Any:
    """An initializer of int64 numbers."""
    return numpy_helper.from_array(np.array(numbers, np.int64), name)


def scalar(name: str, number: int) -> Any:
    """An int64 initializer without dimensions."""
    return numpy_helper.from_array(np.array(number, np.int64), name)


def graph(nodes: Any, inputs: Any, outputs: Any, initializers: Any = ()) -> Any:
    """A graph, which may be a body."""
    return helper.make_graph(list(nodes), "g", list(inputs), list(outputs), list(initializers))


def model(nodes: Any, inputs: Any, outputs: Any, initializers: Any = (), **more: Any) -> bytes:
    """The bytes of a model."""
    result = helper.make_model(
        graph(nodes, inputs, outputs, initializers),
        opset_imports=more.pop("opset_imports", [helper.make_opsetid("", 18)]),
        **more,
    )
    return bytes(result.SerializeToString())


def convolution() -> bytes:
    """Conv, Relu, Reshape, Gemm on images (batch, 3, 8, 8)."""
    return model(
        [
            node("Conv", "x w b", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
            node("Relu", "c", "r"),
            node("Reshape", "r shape", "flat"),
            node("Gemm", "flat v", "y"),
        ],
        [value("x", ["batch", 3, 8, 8])],
        [value("y", ["batch", 10])],
        [weight("w", 4, 3, 3, 3), weight("b", 4), whole("shape", -1, 256), weight("v", 256, 10)],
    )


def loaded(data: bytes) -> Any:
    """The model of these bytes."""
    return onnx.load_model_from_string(data)
