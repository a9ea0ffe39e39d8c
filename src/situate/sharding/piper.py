"""Files of Piper (J. Tarnawski et al., NeurIPS 2021), JSON, also gzipped."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import msgspec

from situate.errors import ReadError, SituateError
from situate.files import strict_json
from situate.files.contents import contents, graph_name
from situate.sharding.stages import Layer, LayerOption, StageProblem, neighbours

HEAD = re.compile(
    rb'(\xef\xbb\xbf)?\s*\{\s*"(maxDevices|maxMemoryPerDevice|bandwidth|mbsInBatch|nodes|edges)"'
)
MARK = b'"TMPCs"'
"""A key of every layer: ways to run it, Piper's "tensor model parallelism configurations"."""

MOST_DEVICES = 10_000
MOST_BYTES = 2.0**60
"""Largest number in a file; sums of them lose no whole bytes."""


class _Option(msgspec.Struct):
    id: str
    timePerSample: float
    parameterSize: float
    memoryUsageA: float
    memoryUsageB: float
    syncTimeFw: dict[int, float]
    syncTimeBw: dict[int, float]


class _Node(msgspec.Struct):
    id: int
    TMPCs: dict[int, list[_Option]]
    name: str = ""


class _Edge(msgspec.Struct):
    sourceId: int
    destId: int
    communicationCost: float


class _File(msgspec.Struct):
    maxDevices: int
    maxMemoryPerDevice: float
    bandwidth: float
    mbsInBatch: int
    nodes: list[_Node]
    edges: list[_Edge]


def is_stage_problem(path: str | Path) -> bool:
    """True if a file begins like one of Piper's, and its layers have options."""
    try:
        data = contents(Path(path))
    except (ReadError, OSError, ValueError):
        return False
    return HEAD.match(data) is not None and MARK in data


def read_stage_problem(path: str | Path) -> StageProblem:
    """The problem in a file of Piper.

    Raises:
        SituateError: the file cannot be read; names the file and the place in it.
    """
    path = Path(path)
    try:
        file = strict_json.decode(contents(path), _File, unique=False)
        return _problem(file, graph_name(path))
    except ReadError as error:
        raise SituateError(f"{path}: {error}") from None


def _problem(file: _File, name: str) -> StageProblem:
    _check_limits(file)
    edges = _edges(file)
    before, after = neighbours(edges)
    layers = {
        node.id: _layer(node, i, {*before.get(node.id, ())}, {*after.get(node.id, ())})
        for i, node in enumerate(file.nodes)
    }
    return StageProblem(
        name,
        file.maxDevices,
        file.maxMemoryPerDevice,
        file.bandwidth,
        file.mbsInBatch,
        layers,
        edges,
    )


def _check_limits(file: _File) -> None:
    if not 1 <= file.maxDevices <= MOST_DEVICES:
        raise ReadError(f"maxDevices: must be from 1 to {MOST_DEVICES:,}, got {file.maxDevices}")
    if not 1 <= file.mbsInBatch <= MOST_BYTES:
        raise ReadError(f"mbsInBatch: must be at least 1, got {file.mbsInBatch}")
    for key in ("maxMemoryPerDevice", "bandwidth"):
        _check_number(getattr(file, key), key)
        if not getattr(file, key):
            raise ReadError(f"{key}: must be above 0")
    if not file.nodes:
        raise ReadError("nodes: there is no layer")
    if len({node.id for node in file.nodes}) < len(file.nodes):
        raise ReadError("nodes: two layers have the same id")


def _check_number(value: float, place: str) -> None:
    if not (math.isfinite(value) and 0 <= value <= MOST_BYTES):
        raise ReadError(f"{place}: must be a number from 0 to 2^60, got {value:g}")


def _edges(file: _File) -> dict[tuple[int, int], float]:
    ids = {node.id for node in file.nodes}
    edges: dict[tuple[int, int], float] = {}
    for i, edge in enumerate(file.edges):
        _check_number(edge.communicationCost, f"edges[{i}].communicationCost")
        pair = edge.sourceId, edge.destId
        for end in pair:
            if end not in ids:
                raise ReadError(f"edges[{i}]: there is no layer {end}")
        if pair in edges:
            raise ReadError(f"edges[{i}]: from {pair[0]} to {pair[1]}, as an edge before")
        edges[pair] = edge.communicationCost
    _check_cycles(edges)
    return edges


def _check_cycles(edges: Mapping[tuple[int, int], float]) -> None:
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for a, b in edges:
        sorter.add(b, a)
    try:
        sorter.prepare()
    except CycleError as error:
        raise ReadError(f"edges: form a cycle through layer {error.args[1][0]}") from None


def _layer(node: _Node, index: int, before: set[int], after: set[int]) -> Layer:
    options = {}
    for degree, rows in node.TMPCs.items():
        place = f"nodes[{index}].TMPCs.{degree}"
        if not 1 <= degree <= MOST_DEVICES:
            raise ReadError(f"{place}: must be a number of devices up to {MOST_DEVICES:,}")
        if len({row.id for row in rows}) < len(rows):
            raise ReadError(f"{place}: two options have the same id")
        options[degree] = [
            _option(row, f"{place}[{k}]", before, after) for k, row in enumerate(rows)
        ]
    if not any(options.values()):
        raise ReadError(f"nodes[{index}].TMPCs: layer {node.id} has no option")
    return Layer(node.name or f"layer {node.id}", {t: rows for t, rows in options.items() if rows})


def _option(row: _Option, place: str, before: set[int], after: set[int]) -> LayerOption:
    for key in ("timePerSample", "parameterSize", "memoryUsageA", "memoryUsageB"):
        _check_number(getattr(row, key), f"{place}.{key}")
    for key, ends in (("syncTimeFw", before), ("syncTimeBw", after)):
        times = getattr(row, key)
        for end, value in times.items():
            _check_number(value, f"{place}.{key}.{end}")
        if times.keys() != ends:
            odd = min(times.keys() ^ ends)
            problem = "has no number for" if odd in ends else "has no edge with"
            raise ReadError(f"{place}.{key}: {problem} layer {odd}")
    return LayerOption(
        row.id,
        row.timePerSample,
        row.parameterSize,
        row.memoryUsageA,
        row.memoryUsageB,
        row.syncTimeFw,
        row.syncTimeBw,
    )
