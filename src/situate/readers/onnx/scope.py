"""Types and contents of the values in a graph: shapes and constants decide them, within limits."""

from __future__ import annotations

import contextlib
import math
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from situate.data.graph import BYTES_LIMIT
from situate.errors import ReadError
from situate.readers.onnx.types import shape_of, sizes_of, tensor, tensor_info, tensor_of

# Limits on the size of a model after expansion, checked first.
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
        # A function has a size once all that it calls have theirs.
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
    for constant in graph.initializer:
        size = tensor_info(constant).bytes
        if size > BYTES_LIMIT:
            raise ReadError(f"tensor {constant.name!r}: is larger than 2^53 bytes")
        if size > CONSTANT_LIMIT:
            for field in ("raw_data", "float_data", "double_data", "int32_data", "int64_data"):
                constant.ClearField(field)


MAX_ELEMENTS = 1024
"""Most elements of a value that is computed: shapes are small."""

# fmt: off
# Nodes that follow from shapes and constants alone are run while the model is read.
ARITHMETIC = {
    "Abs", "Add", "And", "Cast", "CastLike", "Ceil", "Concat", "ConstantOfShape", "CumSum", "Div",
    "Equal", "Expand", "Flatten", "Floor", "Gather", "GatherElements", "GatherND", "Greater",
    "GreaterOrEqual", "Identity", "IsInf", "IsNaN", "Less", "LessOrEqual", "Max", "Min", "Mod",
    "Mul", "Neg", "NonZero", "Not", "Or", "Pow", "Range", "ReduceMax", "ReduceMin", "ReduceProd",
    "ReduceSum", "Reshape", "Round", "ScatterElements", "ScatterND", "Sign", "Slice", "Split",
    "Sqrt", "Squeeze", "Sub", "Tile", "Transpose", "Trilu", "Unsqueeze", "Where", "Xor",
}
# fmt: on
"""Ops that models compute shapes with."""


def folded(
    node: Any,
    opsets: Mapping[str, int],
    kinds: Mapping[str, Any],
    values: Mapping[str, Any],
    outputs: Mapping[str, Any],
) -> list[Any]:
    """The outputs of a node, as tensors in order; none if they depend on data or are large.

    Args:
        opsets: version of each domain.
        kinds: types of the inputs.
        values: contents of the inputs, if known.
        outputs: inferred types of the outputs; types that a model states may be wrong.
    """
    if node.domain or any(map(_is_elsewhere, node.attribute)):
        return []
    feeds = _feeds(node, kinds, values)
    if feeds is None or not _is_small_work(node, feeds, outputs):
        return []
    with contextlib.suppress(Exception):  # a value that cannot be computed stays unknown
        return _run(node, feeds, opsets)
    return []


def _feeds(node: Any, kinds: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Arrays for the node's inputs; None if it needs data."""
    if node.op_type == "Constant":
        return {}
    if node.op_type in ("Shape", "Size") and node.input:
        # An array of this shape without its memory, since neither op reads numbers.
        return {node.input[0]: np.broadcast_to(np.float32(0), sizes_of(kinds[node.input[0]]))}
    inputs = [name for name in node.input if name]
    if node.op_type not in ARITHMETIC or not inputs or any(values.get(n) is None for n in inputs):
        return None
    return {name: _array(values[name]) for name in inputs}


def _is_small_work(node: Any, feeds: Mapping[str, Any], outputs: Mapping[str, Any]) -> bool:
    if node.op_type == "NonZero":  # makes at most as many columns as it reads elements
        return True
    shapes = [shape_of(outputs.get(name)) for name in node.output if name]
    return all(s is not None and None not in s and _is_small(s) for s in shapes)


def _run(node: Any, feeds: Mapping[str, Any], opsets: Mapping[str, int]) -> list[Any]:
    import onnx
    from onnx.reference import ReferenceEvaluator

    outputs = [name for name in node.output if name]
    arguments = [onnx.ValueInfoProto(name=name) for name in (*feeds, *outputs)]
    graph = onnx.helper.make_graph([node], "", arguments[: len(feeds)], arguments[len(feeds) :])
    with np.errstate(all="ignore"):
        results = ReferenceEvaluator(graph, opsets=dict(opsets)).run(None, dict(feeds))
    pairs = zip(outputs, results, strict=True)
    return [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in pairs]


def _is_elsewhere(attribute: Any) -> bool:
    """True if a tensor of the attribute is in another file, which onnx would look for in the
    current directory."""
    sparse = attribute.sparse_tensor
    return any(t.external_data for t in (attribute.t, sparse.values, sparse.indices))


def _is_small(shape: Iterable[Any]) -> bool:
    """True if a value of this shape is small enough to compute and keep."""
    return bool(math.prod(shape) <= MAX_ELEMENTS)


def _array(tensor: Any) -> Any:
    import onnx

    return onnx.numpy_helper.to_array(tensor)


# Types and contents of the values in a graph and in the graphs around it.
@dataclass
class Scope:
    """Types of values by name, and the contents of values that do not depend on data."""

    types: ChainMap[str, Any] = field(default_factory=ChainMap)
    lists: ChainMap[str, tuple[str, ...]] = field(default_factory=ChainMap)
    """Names of the tensors in each sequence and optional."""
    stated: dict[str, Any] = field(default_factory=dict)
    """Types that the graph states for its nodes' outputs; inferred types override them."""
    is_body: bool = False
    _contents: ChainMap[str, Any] = field(default_factory=ChainMap)

    def inner(self) -> Scope:
        """The scope of a body."""
        return Scope(
            self.types.new_child(),
            self.lists.new_child(),
            is_body=True,
            _contents=self._contents.new_child(),
        )

    def bind(self, name: str, kind: Any, content: Any = None) -> None:
        """Bind the type of a value and, if known, its content as a tensor."""
        self.types[name] = kind
        self._contents[name] = content

    def content(self, name: str) -> Any:
        """The content of a value as a tensor; None if unknown."""
        return self._contents.get(name)

    def number(self, name: str) -> int | None:
        """The content of a single integer or truth value; None if unknown."""
        import onnx

        if (content := self.content(name)) is None:
            return None
        array = onnx.numpy_helper.to_array(content)
        return int(array.reshape(())) if array.size == 1 else None

    def hold(self, graph: Any) -> None:
        """Bind the constants of a graph; contents of large ones and of other files are unknown."""
        for constant in graph.initializer:
            content = constant if _is_whole(constant) else None
            self.bind(constant.name, tensor_of(constant), content)
        for sparse in graph.sparse_initializer:
            self.bind(sparse.values.name, tensor(sparse.values.data_type, sparse.dims))


def _is_whole(constant: Any) -> bool:
    """True if the content of a constant is small, in this file, and as long as its shape says."""
    import onnx

    small = _is_small(constant.dims) and tensor_info(constant).bytes <= CONSTANT_LIMIT
    if not small or constant.external_data:
        return False
    try:
        onnx.numpy_helper.to_array(constant)
    except (TypeError, ValueError, KeyError, RuntimeError):  # damaged, or of an unknown type
        return False
    return True
