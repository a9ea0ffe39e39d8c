"""TensorFlow's CostGraphDef, text and binary. See docs/formats/costgraph.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from situate.data.graph import BYTES_LIMIT, Graph, Op
from situate.errors import MissingExtra, ReadError
from situate.files.contents import lines
from situate.files.strict_json import Keys
from situate.readers import wire
from situate.readers.dataflow import Dataflow, unique

MICROSECONDS = 1_000_000

SCALARS = {3, 6, 7, 9, 10, 11, 12, 14, 15, 16, 17}
"""Numeric fields of a node. Field 3 is its id; in a GraphDef it is a text."""

_TEXT = re.compile(rb"(\xef\xbb\xbf)?(\s|#[^\n]*\n)*(node|cost)\s*:?\s*[{<]")


def recognises(data: bytes, keys: Keys) -> bool:
    """True if the content is a CostGraphDef: nodes with a numeric id, in text or in binary."""
    return bool(_TEXT.match(data[:65536])) or _is_binary(data)


def _is_binary(data: bytes) -> bool:
    message = wire.shape(data)
    if message is None or not set(message) <= {1, 2} or message.get(1) != wire.BYTES:
        return False
    # Sixteen nodes tell a CostGraphDef from a GraphDef, whose field 3 is a text.
    nodes = (value for number, _, value in wire.first_fields(data) if number == 1)
    return all(_is_node(wire.shape(node)) for node in islice(nodes, 16))


def _is_node(fields: dict[int, int] | None) -> bool:
    return fields is not None and all(
        # Field 8 is a list of numbers, which a writer may or may not pack into bytes.
        number == 8 or (kind == wire.VARINT) == (number in SCALARS)
        for number, kind in fields.items()
    )


def read(data: bytes, name: str) -> Graph:
    """The graph: an op per node, a tensor per output; microseconds become seconds.

    Raises:
        MissingExtra: tensorboard, which has the protocol's description, is not installed.
        ReadError: no CostGraphDef, an edge from an unknown node or port, a negative cost or size.
        GraphError: the graph breaks its own rules; a loop of TensorFlow 1 is a cycle.
    """
    nodes = list(_parse(data).node)
    if not nodes:
        raise ReadError("the CostGraphDef has no nodes")
    by_id = _by_id(nodes)
    names = dict(zip(by_id, unique([n.name or f"node{n.id}" for n in nodes]), strict=True))
    # Port 0 is the default: only a file that writes -1 for "no alias" means its zeros.
    aliases = any(info.alias_input_port < 0 for node in nodes for info in node.output_info)
    flow = Dataflow()
    for node in nodes:
        _add(flow, node, names, by_id if aliases else {})
    flow.control.update(dict.fromkeys(_waits(nodes, names)))
    ops, tensors, control = flow.finish()
    return Graph(name, ops, tensors, control, source="costgraph", warnings=_warnings(nodes))


def _parse(data: bytes) -> Any:
    try:
        from google.protobuf import text_format
        from google.protobuf.message import DecodeError
        from tensorboard.compat.proto.cost_graph_pb2 import CostGraphDef
    except ImportError:
        raise MissingExtra("tensorboard", "report") from None
    message = CostGraphDef()
    try:
        if _TEXT.match(data[:65536]):
            text_format.ParseLines(lines(data), message)
        else:
            message.ParseFromString(data)
    except (text_format.ParseError, DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ReadError(f"is no CostGraphDef: {str(error)[:300]}") from None
    return message


def _by_id(nodes: list[Any]) -> dict[int, Any]:
    by_id: dict[int, Any] = {}
    for node in nodes:
        if (other := by_id.setdefault(node.id, node)) is not node:
            raise ReadError(f"nodes {other.name!r} and {node.name!r} have the same id {node.id}")
    return by_id


def _op(node: Any, name: str) -> Op:
    where = f"node {name!r}"
    path, _, last = name.rpartition("/")
    temporary = node.temporary_memory_size or node.device_temp_memory_size
    if node.compute_cost < 0:
        raise ReadError(f"{where}: compute_cost: must not be negative, got {node.compute_cost}")
    # The last part of a name is the kind, with a number if there are several: `add_1`, `add#2`.
    return Op(
        name,
        kind=f"tf.{re.sub(r'(_[0-9]+)?(#[0-9]+)?$', '', last) or 'op'}",
        seconds={"*": node.compute_cost / MICROSECONDS},
        persistent=_bytes(_persistent(node), f"{where}: persistent memory"),
        workspace=_bytes(temporary, f"{where}: temporary memory"),
        module=path,
        phase="backward" if {"gradients", "gradient_tape"} & set(path.split("/")) else "",
    )


def _value(info: Any, names: dict[int, str], reader: str) -> str:
    """The name of an input's source, as TensorFlow writes it: node:port."""
    if info.preceding_node not in names:
        raise ReadError(f"node {reader!r}: reads node {info.preceding_node}, which does not exist")
    return f"{names[info.preceding_node]}:{info.preceding_port}"


def _add(flow: Dataflow, node: Any, names: dict[int, str], by_id: dict[int, Any]) -> None:
    """Add the node as an op with its outputs.

    An alias sits with its original. An alias of a node without cost is a view.
    """
    name = names[node.id]
    inputs = [_value(info, names, name) for info in node.input_info]
    op = flow.add(_op(node, name), inputs)
    for port, info in enumerate(node.output_info):
        size = _bytes(max(info.size, 0), f"node {name!r}: output {port}: size")
        alias = _aliased(node, info, by_id)
        view = alias is not None and alias.size == info.size and not node.compute_cost
        of = inputs[info.alias_input_port] if alias is not None else None
        is_variable = _is_variable(node, info, by_id)
        flow.make(f"{name}:{port}", op, size, view_of=of if view else None, resident=is_variable)
        if of is not None:
            flow.beside(op, of)
        if node.is_final:
            flow.output(f"{name}:{port}")


def _aliased(node: Any, info: Any, by_id: dict[int, Any]) -> Any | None:
    """The original of the alias `info`; None if it is no alias."""
    if not by_id or not 0 <= info.alias_input_port < len(node.input_info):
        return None
    source = node.input_info[info.alias_input_port]
    maker, port = by_id.get(source.preceding_node), source.preceding_port
    outputs = () if maker is None else maker.output_info
    return outputs[port] if 0 <= port < len(outputs) else None


def _is_variable(node: Any, info: Any, by_id: dict[int, Any]) -> bool:
    """True if the output is a variable: persistent memory of its node, or an alias of such."""
    # A cyclic chain of aliases would not end.
    visited = set[int]()
    while node.id not in visited:
        visited.add(node.id)
        if 0 < info.size <= _persistent(node):
            return True
        if (alias := _aliased(node, info, by_id)) is None:
            return False
        node, info = by_id[node.input_info[info.alias_input_port].preceding_node], alias
    return False


def _persistent(node: Any) -> int:
    return int(node.persistent_memory_size or node.device_persistent_memory_size)


def _waits(nodes: list[Any], names: dict[int, str]) -> Iterator[tuple[int, int]]:
    """All control edges."""
    index = {number: j for j, number in enumerate(names)}
    for op, node in enumerate(nodes):
        for before in node.control_input:
            if before not in index:
                raise ReadError(f"node {names[node.id]!r}: waits for unknown node {before}")
            yield index[before], op


def _bytes(value: int, where: str) -> int:
    if not 0 <= value <= BYTES_LIMIT:
        raise ReadError(f"{where}: must be between 0 and 2^53, got {value}")
    return int(value)


def _warnings(nodes: list[Any]) -> tuple[str, ...]:
    warnings = []
    if not any(node.compute_cost for node in nodes):
        warnings.append("no node has a compute cost: every op takes no time")
    if unknown := sum(info.size < 0 for node in nodes for info in node.output_info):
        warnings.append(f"{unknown} outputs have an unknown size; they count as 0 bytes")
    return tuple(warnings)
