"""FLOPs and memory traffic of a node of an execution trace, from the shapes of its arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import starmap, zip_longest
from typing import Any

from situate.readers.execution_trace.nodes import Node, Value
from situate.readers.products import PRODUCTS, attention, attention_backward

EIGHT_BITS = frozenset({"aten::_int_mm", "aten::_scaled_mm"})
"""Products whose output type differs from that of their factors."""


def traffic(values: Iterable[Value]) -> int:
    """Bytes of all values read and written."""
    return sum(value.size for value in values)


def dtype(node: Node) -> str:
    """The dtype a node computes in: its first floating output, else input, else output.

    An 8-bit product computes in the dtype of its factors.
    """
    if node.name in EIGHT_BITS and node.inputs:
        return node.inputs[0].dtype
    dtypes = [value.dtype for value in (*node.outputs, *node.inputs)]
    floating = (name for name in dtypes if "float" in name or "complex" in name)
    return next(floating, next(iter(dtypes), "float32"))


def flops(node: Node, inside: Iterable[Node]) -> int:
    """FLOPs of matrix products, convolutions, attention and recurrent layers.

    A multiply-add is two. They are those of the node itself, or else of the nodes `inside` it, in
    the order of their beginnings. Other operators and unknown shapes count zero.
    """
    total = 0
    counted_ids = set[int]()
    for call in (node, *inside):
        # Nodes inside a counted node would be counted twice.
        if call.parent in counted_ids and call is not node:
            counted_ids.add(call.id)
        elif formula := _formula(call.name):
            counted_ids.add(call.id)
            total += _evaluated(formula, call)
    return total


def _evaluated(formula: Callable[..., int], node: Node) -> int:
    arguments = starmap(_argument, zip_longest(node.values, node.shapes))
    output = _Tensor((node.outputs[0].elements if node.outputs else 0,))
    try:
        # A file may hold arguments of any form, on which formulas fail in one of these ways.
        return formula(*arguments, out_val=output)
    except (AttributeError, LookupError, TypeError, ValueError):
        return 0


def _formula(name: str) -> Callable[..., int] | None:
    if re.fullmatch(r"aten::_scaled_dot_product_\w*attention\w*_backward", name):
        return attention_backward
    if re.fullmatch(r"aten::_scaled_dot_product_\w*attention\w*", name):
        return attention
    return PRODUCTS.get(name.removeprefix("aten::")) if name.startswith("aten::") else None


@dataclass(frozen=True)
class _Tensor:
    shape: tuple[int, ...]


def _argument(value: Any, shape: Any) -> Any:
    """The argument for a formula: a shape, or the value in the file if it has none."""
    is_shape = isinstance(shape, list) and shape and all(map(_is_size, shape))
    return _Tensor(tuple(shape)) if is_shape else value


def _is_size(size: Any) -> bool:
    return isinstance(size, int) and size >= 0
