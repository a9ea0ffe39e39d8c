"""Limits on the size of a model after expansion, checked first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from situate.data.graph import BYTES_LIMIT
from situate.errors import ReadError
from situate.readers.onnx.shapes import tensor_info

CONSTANT_LIMIT = 4096
"""Largest constant in bytes with known content, which may be a shape for other values."""

DEEPEST = 32
"""Longest chain of functions that call functions."""

MOST_NODES = 250_000
"""Most nodes of a model after the expansion of its functions."""


def check_functions(model: Any) -> None:
    """Refuse functions that expand to too many nodes.

    In a chain of functions with two calls of the next one each, the number of nodes doubles with
    every function.

    Raises:
        ReadError: too many nodes after expansion.
    """
    remaining, sizes = list(model.functions), dict[tuple[str, str], int]()
    for _ in range(DEEPEST):
        callers = {(function.domain, function.name) for function in remaining}
        ready = [callers.isdisjoint(_called_functions(function.node)) for function in remaining]
        for function in (f for f, is_ready in zip(remaining, ready, strict=True) if is_ready):
            key = function.domain, function.name
            sizes[key] = max(_spread(function.node, sizes), sizes.get(key, 0))
        remaining = [f for f, is_ready in zip(remaining, ready, strict=True) if not is_ready]
    if remaining:
        raise ReadError(
            f"function {remaining[0].name!r}: calls itself, or others more than {DEEPEST} deep"
        )
    if _spread(model.graph.node, sizes) > MOST_NODES:
        raise ReadError(f"its functions stand for more than {MOST_NODES:,} nodes")


def _called_functions(nodes: Any) -> Iterator[tuple[str, str]]:
    """Domain and type of the nodes, and of the nodes in their bodies."""
    for node in nodes:
        yield node.domain, node.op_type
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _called_functions(body.node)


def _spread(nodes: Any, sizes: Mapping[tuple[str, str], int]) -> int:
    """The number of nodes after expansion, by the sizes of functions."""
    return sum(sizes.get(key, 1) for key in _called_functions(nodes))


def forget_weights(graph: Any) -> None:
    """Drop the content of large constants: placement needs sizes only, and each copy of the model
    would copy it.

    Raises:
        ReadError: a size that no graph can have.
    """
    for tensor in graph.initializer:
        size = tensor_info(tensor).bytes
        if size > BYTES_LIMIT:
            raise ReadError(f"tensor {tensor.name!r}: is larger than 2^53 bytes")
        if size > CONSTANT_LIMIT:
            for field in ("raw_data", "float_data", "double_data", "int32_data", "int64_data"):
                tensor.ClearField(field)
