"""Constants of an ONNX model, independent of its inputs: initializers and values derived from
them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from situate.readers.onnx.infer import Inferred
from situate.readers.onnx.names import bodies_of
from situate.readers.onnx.shapes import Shapes, tensor_info

SMALL = 1024
"""Largest constant in bytes that every reader copies instead of receiving it."""

NOT_FOLDED = {
    "DequantizeLinear",
    "Bernoulli",
    "Multinomial",
    "RandomNormalLike",
    "RandomUniformLike",
}
"""Ops on constants that still run in every step: dequantisation and random numbers."""


def constant_sizes(model: Inferred, shapes: Shapes) -> tuple[dict[str, int], list[Any]]:
    """Bytes of every constant, and the nodes that remain to run.

    A node with only constant inputs runs when the model is loaded, so its outputs are constants
    too. Values derived from shapes alone take negligible memory.
    """
    sizes = initializer_sizes(model.graph)
    nodes = []
    for node in model.graph.node:
        if _is_constant(node, sizes, model.constants):
            sizes |= {
                value: _size(value, shapes, model.constants) for value in node.output if value
            }
        else:
            nodes.append(node)
    return sizes, nodes


def _size(value: str, shapes: Shapes, constants: frozenset[str]) -> int:
    info = shapes.get(value)
    return info.bytes if info and value not in constants else 0


def initializer_sizes(graph: Any) -> dict[str, int]:
    """Bytes of every initializer; a sparse one has values and indices."""
    sizes = {tensor.name: tensor_info(tensor).bytes for tensor in graph.initializer}
    for sparse in graph.sparse_initializer:
        parts = (sparse.values, sparse.indices)
        sizes[sparse.values.name] = sum(tensor_info(part).bytes for part in parts)
    return sizes


def large_and_shared(sizes: dict[str, int], reads: Iterable[Sequence[str]]) -> list[str]:
    """Constants above `SMALL` that more than one op reads, in order."""
    uses = Counter(value for values in reads for value in values)
    return [value for value, size in sizes.items() if size > SMALL and uses[value] > 1]


def _is_constant(node: Any, sizes: dict[str, int], constants: frozenset[str]) -> bool:
    if node.op_type == "Constant" or constants.issuperset(filter(None, node.output)):
        return True
    inputs = [value for value in node.input if value]
    runs = node.op_type in NOT_FOLDED or next(bodies_of(node), None) is not None
    return bool(inputs) and not runs and all(value in sizes for value in inputs)
