"""situate's own JSON: the whole graph, with references by op name. See docs/graph-format.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from situate.data.cuts import CutParameter, Cuts
from situate.data.graph import BYTES_LIMIT, Graph, MachineDevice, Op, Tensor
from situate.data.graph_json import FORMAT, NamedTensor
from situate.data.op_classes import NAMES
from situate.data.slices import Slices
from situate.errors import ReadError, nearest
from situate.files import strict_json
from situate.files.strict_json import Keys

PHASES = ("forward", "backward", "update")
"""Phases of a training step."""

RULES = ("situate", "regal", "doppler", "dnn-partitioning")
"""Names of the rules by which graphs are scored, see docs/execution-model.md."""


class File(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The content of a file."""

    format: Literal["situate-graph"]
    version: Literal[1]
    name: str
    ops: list[Op]
    tensors: list[NamedTensor] = []
    control: list[tuple[str, str]] = []
    unit: Literal["s", ""] = "s"
    rules: str = "situate"
    source: str = "situate"
    machine: list[MachineDevice] = []
    warnings: list[str] = []
    optimizer: str | None = None
    slices: Slices | None = None
    recompute: list[str] = []
    cuts: Cuts | None = None
    cut_parameters: list[CutParameter] = []


def recognises(data: bytes, keys: Keys) -> bool:
    """True if the content is a JSON object whose `format` is `situate-graph`."""
    return keys.get("format") == msgspec.Raw(msgspec.json.encode(FORMAT))


def read(data: bytes, name: str) -> Graph:
    """The graph, under the name that the file itself gives it.

    Raises:
        ReadError: the file does not have the form that docs/graph-format.md describes.
        GraphError: the graph breaks its own rules.
    """
    file = strict_json.decode(data, File)
    _check_rules(file.rules)
    _check_machine(file.machine)
    _check_words(file.ops)
    index = {op.name: j for j, op in enumerate(file.ops)}
    return Graph(
        name=file.name or name,
        ops=tuple(file.ops),
        tensors=tuple(_tensor(tensor, index) for tensor in file.tensors),
        control=tuple(_edge(edge, index) for edge in file.control),
        unit=file.unit,
        rules=file.rules,
        machine=tuple(file.machine),
        source=file.source,
        warnings=tuple(file.warnings),
        optimizer=file.optimizer,
        slices=file.slices,
        recompute=tuple(file.recompute),
        cuts=file.cuts,
        cut_parameters=tuple(file.cut_parameters),
    )


def _tensor(tensor: NamedTensor, index: dict[str, int]) -> Tensor:
    try:
        return Tensor(
            tensor.name,
            index[tensor.producer],
            tensor.size,
            tuple([index[consumer] for consumer in tensor.consumers]),
            tensor.output,
            tensor.resident,
            tensor.seconds,
        )
    except KeyError:
        where = f"tensor {tensor.name!r}"
        if tensor.producer not in index:
            raise _dangling(f"{where}: its producer", tensor.producer, index) from None
        name = next(name for name in tensor.consumers if name not in index)
        raise _dangling(f"{where}: its consumer", name, index) from None


def _edge(edge: tuple[str, str], index: dict[str, int]) -> tuple[int, int]:
    for name in edge:
        if name not in index:
            raise _dangling(f"control edge {list(edge)}:", name, index)
    return index[edge[0]], index[edge[1]]


def _dangling(where: str, name: str, index: dict[str, int]) -> ReadError:
    return ReadError(f"{where} {name!r} is no op{nearest(name, index)}")


def _check_rules(rules: str) -> None:
    if rules not in RULES:
        raise ReadError(f"rules: unknown rules {rules!r}{nearest(rules, RULES)}")


def _check_machine(machine: Sequence[MachineDevice]) -> None:
    for i, device in enumerate(machine):
        if device.memory is not None and not 0 < device.memory <= BYTES_LIMIT:
            raise ReadError(f"machine[{i}].memory: must be between 1 and 2^53, got {device.memory}")


def _check_words(ops: Sequence[Op]) -> None:
    for op in ops:
        if op.phase and op.phase not in PHASES:
            hint = nearest(op.phase, PHASES)
            raise ReadError(f"op {op.name!r}: phase: unknown phase {op.phase!r}{hint}")
        if op.dtype not in NAMES:
            hint = nearest(op.dtype, NAMES)
            raise ReadError(f"op {op.name!r}: dtype: unknown dtype {op.dtype!r}{hint}")
