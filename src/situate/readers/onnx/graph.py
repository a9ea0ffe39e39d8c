"""An ONNX graph with known shapes as a graph of ops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from situate.data.graph import Graph, Op
from situate.errors import ReadError
from situate.readers.dataflow import Dataflow, unique
from situate.readers.onnx.names import bodies_of, node_name
from situate.readers.onnx.names import reads as reads_of
from situate.readers.onnx.operators.work import dtype, work
from situate.readers.onnx.types import Shapes, tensor_info
from situate.readers.onnx.walk import Inferred

# Constants of an ONNX model, independent of its inputs: initializers and values derived from
# them.
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


def _constant_sizes(model: Inferred, shapes: Shapes) -> tuple[dict[str, int], list[Any]]:
    """Bytes of every constant, and the nodes that remain to run.

    A node with only constant inputs runs when the model is loaded, so its outputs are constants
    too. Values derived from shapes alone take negligible memory.
    """
    sizes = initializer_sizes(model.graph)
    nodes = []
    for node in model.graph.node:
        if _is_constant(node, sizes, model.constants):
            sizes |= {
                value: _derived_size(value, shapes, model.constants)
                for value in node.output
                if value
            }
        else:
            nodes.append(node)
    return sizes, nodes


def _derived_size(value: str, shapes: Shapes, constants: frozenset[str]) -> int:
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


VIEWS = {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze"}
"""Ops whose first output shares the memory of their first input."""

METADATA = {"Shape", "Size"}
"""Ops that read no data and share the device of their input."""


def graph_of(model: Inferred, name: str) -> Graph:
    """The graph: inputs, shared parameters and nodes as ops, values as tensors.

    Raises:
        ReadError: no node is left to run, a value without a shape.
        GraphError: the graph breaks its own rules.
    """
    shapes = Shapes.of(model.graph)
    constants, nodes = _constant_sizes(model, shapes)
    reads = [reads_of(node) for node in nodes]
    shared = large_and_shared(constants, reads)
    inputs = [value.name for value in model.graph.input if value.name not in constants]
    if model.graph.node and not (inputs or nodes):
        raise ReadError("all its nodes are constant: they run when it is loaded, none in a step")
    names = iter(unique([*inputs, *shared, *map(node_name, nodes)]))
    flow = Dataflow()
    for value in inputs:
        op = flow.add(Op(next(names), kind="input", phase="forward"))
        flow.make(value, op, _size(value, shapes))
    for value in shared:
        size = constants.pop(value)
        op = flow.add(Op(next(names), kind="parameter", persistent=size, phase="forward"))
        flow.make(value, op, size, resident=True)
        flow.carry(value)
    sizes = dict(constants)
    for node, values in zip(nodes, reads, strict=True):
        # The first reader holds a constant; the copies of other readers are small and do not count.
        size = sum(sizes.pop(value, 0) for value in values)
        _add(flow, node, next(names), [v for v in values if v not in constants], size, shapes)
    for output in model.graph.output:
        if output.name not in constants:
            flow.output(output.name)
    return Graph(name, *flow.finish(), source="onnx", warnings=model.warnings)


def check_flow(graph: Any) -> None:
    """Check that an earlier node produces every input of a node, and only once.

    Raises:
        ReadError: names the value and the op that reads it.
        GraphError: names a cycle.
    """
    names = unique([node_name(node) for node in graph.node])
    defined = {value.name for value in (*graph.input, *graph.initializer)}
    defined |= {sparse.values.name for sparse in graph.sparse_initializer}
    makers: dict[str, int] = {}
    for op, node in enumerate(graph.node):
        for value in filter(None, node.output):
            if makers.setdefault(value, op) != op:
                raise ReadError(f"value {value!r} is made twice")
    reads = [
        (v, op) for op, node in enumerate(graph.node) for v in reads_of(node) if v not in defined
    ]
    for value, op in reads:
        if value not in makers:
            raise ReadError(f"op {names[op]!r} reads {value!r}, which no op makes")
    early = [(value, op) for value, op in reads if makers[value] >= op]
    if early:
        # If a cycle is the reason, the constructor raises an error that names it.
        Graph(graph.name, tuple(map(Op, names)), control=tuple((makers[v], op) for v, op in reads))
        value, op = early[0]
        maker = names[makers[value]]
        raise ReadError(f"op {names[op]!r} reads {value!r} before op {maker!r} makes it: sort them")


def _add(
    flow: Dataflow, node: Any, name: str, values: Sequence[str], persistent: int, shapes: Shapes
) -> None:
    """Add a node as an op with its outputs; it holds `persistent` bytes of constants."""
    flops, traffic = work(node, shapes)
    outputs = [value for value in node.output if value]
    op = flow.add(
        Op(
            name,
            kind=f"onnx.{node.op_type}",
            flops=flops,
            traffic=traffic,
            dtype=dtype(node, shapes),
            persistent=persistent + _held_in_bodies(node),
            module=name.strip("/").rpartition("/")[0],
            phase="forward",
        ),
        values,
    )
    first_input = next(iter(node.input), "")
    looks = node.op_type in VIEWS | METADATA and first_input in values
    for port, value in enumerate(outputs):
        view = first_input if looks and node.op_type in VIEWS and port == 0 else None
        flow.make(value, op, _size(value, shapes), view_of=view)
    if looks:
        flow.beside(op, first_input)


def _held_in_bodies(node: Any) -> int:
    """Bytes of the constants inside the node's bodies."""
    return sum(map(_constant_bytes, bodies_of(node)))


def _constant_bytes(body: Any) -> int:
    constants = (node for node in body.node if node.op_type == "Constant")
    stated = (a.t for node in constants for a in node.attribute if a.HasField("t"))
    own = sum(initializer_sizes(body).values()) + sum(tensor_info(t).bytes for t in stated)
    return own + sum(map(_held_in_bodies, body.node))


def _size(value: str, shapes: Shapes) -> int:
    info = shapes.get(value)
    assert info is not None, value
    return info.bytes
