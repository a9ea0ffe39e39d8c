"""The nodes of a PyTorch execution trace, in both of its layouts: with fields of their own (schema
1.0) and with `attrs` (since 1.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import msgspec

from situate.data.op_classes import NAMES
from situate.errors import ReadError
from situate.files import strict_json

DTYPES = {
    "float": "float32",
    "double": "float64",
    "c10::complex<c10::Half>": "complex32",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "unsigned char": "uint8",
    "signed char": "int8",
    "short": "int16",
    "unsigned short": "uint16",
    "unsigned int": "uint32",
    "unsigned long": "uint64",
    "int": "int32",
    "long": "int64",
    "long int": "int64",
}
"""PyTorch's element types by C++ type, where the lower-case name differs."""

MARKER = "[pytorch|profiler|"
"""Prefix of the names of nodes for the process and its threads."""

ALLOCATIONS = frozenset(
    f"aten::{name}"
    for name in ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
)
"""Operators whose results are uninitialised memory."""

DEEPEST = 8
"""Most nested lists of tensors; PyTorch's operators have at most two."""

_TENSOR = re.compile(r"Tensor\(([^()]*(?:\([^()]*\))?)\)")


class _Side(msgspec.Struct, frozen=True):
    """Inputs or outputs since 1.1."""

    values: list[Any] = []
    shapes: list[Any] = []
    types: list[str] = []


class _Attribute(msgspec.Struct, frozen=True):
    name: str
    value: Any = None


class _Node(msgspec.Struct, frozen=True):
    id: int
    name: str
    parent: int | None = None
    ctrl_deps: int | None = None
    rf_id: int | None = None
    tid: int | None = None
    op_schema: str | None = None
    inputs: list[Any] | _Side = []
    input_shapes: list[Any] = []
    input_types: list[str] = []
    outputs: list[Any] | _Side = []
    output_shapes: list[Any] = []
    output_types: list[str] = []
    attrs: list[_Attribute] = []


class _File(msgspec.Struct, frozen=True):
    schema: str
    nodes: list[_Node]


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor that a node reads or produces."""

    storage: int
    """Number of its memory, which views of one another share. A tensor without memory (0 in the
    file) has its own negative number."""
    elements: int
    size: int
    """Bytes of its elements."""
    dtype: str
    device: str
    argument: int
    """Place among the arguments of the node."""
    entry: int | None
    """Place in the argument's list; None if the argument is no list."""


@dataclass(frozen=True, slots=True)
class Node:
    """A call of an operator, or an annotation around calls."""

    id: int
    name: str
    parent: int
    """Id of the enclosing node; its own if there is none."""
    thread: int
    record: int
    """Number of its record function, which a Kineto trace has too."""
    schema: str
    """PyTorch's declaration of the operator; empty for annotations."""
    values: list[Any]
    """The arguments as in the file; likewise `shapes`."""
    shapes: list[Any]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]

    @property
    def is_operator(self) -> bool:
        return bool(self.schema)


def nodes(data: bytes) -> list[Node]:
    """All nodes in the order of their beginnings, so that enclosing nodes come first.

    Raises:
        ReadError: names the node that is not as it should be.
    """
    file = strict_json.decode(data, _File, unique=False)
    if not file.schema.startswith("1."):
        raise ReadError(f"schema: must be 1.0 or 1.1, got {file.schema[:40]!r}")
    by_id: dict[int, Node] = {}
    # Ids count the beginnings of nodes.
    for node in sorted(file.nodes, key=lambda node: node.id):
        if node.id in by_id:
            raise ReadError(f"nodes: two have the id {node.id}")
        by_id[node.id] = _node(node, by_id)
    return list(by_id.values())


def _node(node: _Node, before: Mapping[int, Node]) -> Node:
    where = f"node {node.id}"
    attributes = {attribute.name: attribute.value for attribute in node.attrs}
    # The older layout has `parent`, the newer one `ctrl_deps`.
    parent = node.parent if node.parent is not None else node.ctrl_deps
    if parent is None or parent not in before:
        if parent is not None and parent > node.id:
            raise ReadError(f"{where}: ran inside node {parent}, which began later")
        parent = node.id
    inputs = _side(node.inputs, node.input_shapes, node.input_types)
    outputs = _side(node.outputs, node.output_shapes, node.output_types)
    return Node(
        node.id,
        node.name,
        parent,
        _whole(node.tid, attributes, "tid", where),
        _whole(node.rf_id, attributes, "rf_id", where),
        node.op_schema or str(attributes.get("op_schema") or ""),
        inputs.values,
        inputs.shapes,
        tuple(_values(inputs, f"{where}: inputs")),
        tuple(_values(outputs, f"{where}: outputs")),
    )


def _whole(value: int | None, attributes: Mapping[str, Any], key: str, where: str) -> int:
    number = attributes.get(key, 0) if value is None else value
    if not isinstance(number, int):
        raise ReadError(f"{where}: {key}: must be a whole number, got {str(number)[:40]!r}")
    return number


def _side(side: list[Any] | _Side, shapes: list[Any], types: list[str]) -> _Side:
    return side if isinstance(side, _Side) else _Side(side, shapes, types)


def _values(side: _Side, where: str) -> Iterator[Value]:
    for argument, (value, kind) in enumerate(zip(side.values, side.types, strict=False)):
        if "Tensor(" not in kind:
            continue
        is_list = kind.startswith("GenericList")
        dtypes = _TENSOR.findall(kind)
        for entry, (tensor, dtype) in enumerate(
            zip_longest(_tensors(value, f"{where}[{argument}]"), dtypes, fillvalue=None)
        ):
            # Tensors without elements carry no data.
            if tensor is not None and tensor[3]:
                yield _value(tensor, dtype or "float", argument, entry if is_list else None)


def _value(tensor: Sequence[Any], dtype: str, argument: int, entry: int | None) -> Value:
    number, storage, _, elements, width, device = tensor[:6]
    name = DTYPES.get(dtype, dtype.removeprefix("c10::").lower())
    element_type = name if name in NAMES else ""
    return Value(
        storage or -number, elements, elements * width, element_type, device, argument, entry
    )


def _tensors(value: Any, where: str, depth: int = 0) -> Iterator[list[Any]]:
    """The tensors of an argument: [tensor, storage, offset, elements, bytes each, device]."""
    if not isinstance(value, list):
        return
    if value and not isinstance(value[0], (list, str)):
        if not (len(value) >= 6 and all(map(_is_size, value[:5])) and isinstance(value[5], str)):
            raise ReadError(f"{where}: is no tensor: {str(value)[:60]}")
        yield value
        return
    if depth == DEEPEST:
        raise ReadError(f"{where}: lists more than {DEEPEST} deep")
    for entry in value:
        yield from _tensors(entry, where, depth + 1)


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
