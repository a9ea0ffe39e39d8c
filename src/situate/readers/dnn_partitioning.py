"""The JSON of Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph
Operators", NeurIPS 2020. See docs/formats/dnn-partitioning.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

import msgspec

from situate.data.graph import BYTES_LIMIT, Graph, MachineDevice, Op, Tensor
from situate.errors import ReadError
from situate.files import strict_json
from situate.files.strict_json import Keys
from situate.readers.dataflow import unique

DEVICES_LIMIT = 256
FASTEST_LINK = 1e12
"""Bytes/s between host and accelerator above which the unit of the edge costs is in doubt."""


class _Node(msgspec.Struct, frozen=True):
    id: int
    supported: bool | int = msgspec.field(name="supportedOnFpga")
    cpu: float = msgspec.field(name="cpuLatency")
    accelerator: float = msgspec.field(name="fpgaLatency")
    size: float
    backward: bool | int = msgspec.field(name="isBackwardNode", default=False)
    color: int | None = msgspec.field(name="colorClass", default=None)
    name: str = ""


class _Edge(msgspec.Struct, frozen=True):
    source: int = msgspec.field(name="sourceId")
    target: int = msgspec.field(name="destId")
    cost: float
    size: float = 0.0


class _File(msgspec.Struct, frozen=True):
    memory: float = msgspec.field(name="maxSizePerFPGA")
    accelerators: int = msgspec.field(name="maxFPGAs")
    cpus: int = msgspec.field(name="maxCPUs")
    nodes: list[_Node]
    edges: list[_Edge]


def recognises(data: bytes, keys: Keys) -> bool:
    """True if the content is a JSON object with this format's keys."""
    return keys.keys() >= {"maxFPGAs", "nodes", "edges"}


def read(data: bytes, name: str) -> Graph:
    """The graph with the machine it brings; milliseconds become seconds.

    Raises:
        ReadError: a missing key, an edge to a node that is not there, an impossible machine.
        GraphError: the graph breaks its own rules.
    """
    file = strict_json.decode(data, _File)
    index = _index(file.nodes)
    names = unique([node.name or f"node{node.id}" for node in file.nodes])
    return Graph(
        name=name,
        ops=tuple(_op(node, op_name) for node, op_name in zip(file.nodes, names, strict=True)),
        tensors=tuple(_tensors(file.edges, index, names)),
        rules="dnn-partitioning",
        machine=_machine(file),
        source="dnn-partitioning",
        warnings=_warnings(file.edges),
    )


def _index(nodes: Sequence[_Node]) -> dict[int, int]:
    index: dict[int, int] = {}
    for j, node in enumerate(nodes):
        if index.setdefault(node.id, j) != j:
            raise ReadError(f"nodes[{j}].id: two nodes have the id {node.id}")
    return index


def _op(node: _Node, name: str) -> Op:
    seconds = {"cpu": node.cpu / 1000}
    if node.supported:
        seconds["accelerator"] = node.accelerator / 1000
    return Op(
        name,
        seconds=seconds,
        persistent=_bytes(node.size, f"node {name!r}: size"),
        group=None if node.color is None else f"color{node.color}",
        phase="backward" if node.backward else "forward",
    )


def _tensors(edges: Sequence[_Edge], index: dict[int, int], names: Sequence[str]) -> list[Tensor]:
    """One tensor per node and cost, because a node's output is sent once per device.

    Edges of one node with the same cost carry the same tensor, even if their sizes differ.
    """
    consumers: dict[tuple[int, float], dict[int, int]] = {}
    for i, edge in enumerate(edges):
        for end in (edge.source, edge.target):
            if end not in index:
                raise ReadError(f"edges[{i}]: there is no node {end}")
        size = _bytes(edge.size, f"edges[{i}].size")
        # Costs are in milliseconds.
        key = index[edge.source], edge.cost / 1000
        consumers.setdefault(key, {})[index[edge.target]] = size
    tensor_names = unique([names[producer] for producer, _ in consumers])
    return [
        Tensor(name, producer, max(sizes.values()), tuple(sizes), seconds=seconds)
        for name, ((producer, seconds), sizes) in zip(tensor_names, consumers.items(), strict=True)
    ]


def _machine(file: _File) -> tuple[MachineDevice, ...]:
    count = file.accelerators + file.cpus
    if file.accelerators < 0 or file.cpus < 0 or not 1 <= count <= DEVICES_LIMIT:
        raise ReadError(
            f"maxFPGAs and maxCPUs: must be between 1 and {DEVICES_LIMIT} devices together, got "
            f"{file.accelerators} and {file.cpus}"
        )
    memory = _bytes(file.memory, "maxSizePerFPGA")
    if not memory:
        raise ReadError(f"maxSizePerFPGA: must be positive, got {file.memory}")
    accelerators = [MachineDevice(f"fpga{i}", "fpga", memory) for i in range(file.accelerators)]
    return *accelerators, *(MachineDevice(f"cpu{i}", "cpu") for i in range(file.cpus))


def _warnings(edges: Sequence[_Edge]) -> tuple[str, ...]:
    speeds = [edge.size / edge.cost * 1000 for edge in edges if edge.size > 0 and edge.cost > 0]
    if not speeds or median(speeds) < FASTEST_LINK:
        return ()
    return (
        f"edge costs imply links of {median(speeds) / 1e9:.0f} GB/s, about 1000 times what is "
        "usual in this format: they may be seconds where milliseconds are due; nothing was changed",
    )


def _bytes(size: float, where: str) -> int:
    """Whole bytes, rounded up."""
    if not 0 <= size <= BYTES_LIMIT:
        raise ReadError(f"{where}: must be between 0 and 2^53, got {size}")
    return math.ceil(size)
