"""What a node of an execution trace computes and moves, from the shapes of its arguments."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from situate.readers.execution_trace.nodes import Node, Value


def traffic(values: Iterable[Value]) -> int:
    """Bytes of all that is read and written."""
    return sum(value.size for value in values)


def dtype(node: Node) -> str:
    """The dtype a node computes in: that of its first floating output, else input, else output."""
    found = [value.dtype for value in (*node.outputs, *node.inputs)]
    return next((name for name in found if "float" in name), next(iter(found), "float32"))


def flops(node: Node, inside: Iterable[Node]) -> int:
    """Multiplications and additions (two for a multiply-add) of matrix products, convolutions and
    attention: of the node itself, or else of what ran `inside` it, in the order in which it began.
    Nothing else is counted, and nothing whose shapes the trace does not hold."""
    total = 0
    counted = set[int]()
    for call in (node, *inside):
        if call.parent in counted and call is not node:
            counted.add(call.id)
        elif formula := _formula(call.name):
            counted.add(call.id)
            total += _evaluated(formula, call)
    return total


def _evaluated(formula: Callable[[Node], int], node: Node) -> int:
    try:
        return formula(node)
    except (LookupError, TypeError, ValueError, ZeroDivisionError):
        return 0


def _formula(name: str) -> Callable[[Node], int] | None:
    if re.fullmatch(r"aten::_scaled_dot_product_\w*attention\w*_backward", name):
        return _attention_backward
    if re.fullmatch(r"aten::_scaled_dot_product_\w*attention\w*", name):
        return _attention
    return _FORMULAS.get(name)


def _shape(node: Node, argument: int) -> list[int]:
    shape: Any = node.shapes[argument]
    if not all(isinstance(size, int) and size >= 0 for size in shape):
        raise ValueError
    return list(shape)


def _product(first: int) -> Callable[[Node], int]:
    """Of a matrix product whose factors are arguments `first` and the next."""
    return lambda node: 2 * math.prod(_shape(node, first)) * _shape(node, first + 1)[-1]


def _matrix_vector(first: int) -> Callable[[Node], int]:
    return lambda node: 2 * math.prod(_shape(node, first))


def _convolution(node: Node) -> int:
    """Every element of the output, or of a transposed convolution's input, meets the weights of
    one channel."""
    weight, is_transposed = _shape(node, 1), node.values[6] is True
    elements = math.prod(_shape(node, 0)) if is_transposed else node.outputs[0].elements
    return 2 * elements * math.prod(weight) // weight[0]


def _convolution_backward(node: Node) -> int:
    """As much as the convolution for each gradient that is asked for, of input and weight."""
    weight, is_transposed = _shape(node, 2), node.values[7] is True
    elements = math.prod(_shape(node, 1 if is_transposed else 0))
    asked = sum(bool(wanted) for wanted in node.values[10][:2])
    return 2 * asked * elements * math.prod(weight) // weight[0]


def _attention(node: Node) -> int:
    query, key, value = (_shape(node, argument) for argument in range(3))
    return 2 * math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _attention_backward(node: Node) -> int:
    """The scores once more, and two products for each of the two of the way forward."""
    query, key, value = (_shape(node, argument) for argument in range(1, 4))
    return 2 * math.prod(query[:-1]) * key[-2] * (3 * query[-1] + 2 * value[-1])


_FORMULAS: dict[str, Callable[[Node], int]] = {
    "aten::mm": _product(0),
    "aten::bmm": _product(0),
    "aten::addmm": _product(1),
    "aten::baddbmm": _product(1),
    "aten::mv": _matrix_vector(0),
    "aten::dot": _matrix_vector(0),
    "aten::addmv": _matrix_vector(1),
    "aten::convolution": _convolution,
    "aten::convolution_backward": _convolution_backward,
}
