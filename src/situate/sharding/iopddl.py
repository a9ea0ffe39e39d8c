"""Files of the ASPLOS 2025 contest on intra-operator parallelism (IOPDDL): JSON, also gzipped."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import msgspec
import numpy as np

from situate.errors import ReadError, SituateError
from situate.files import strict_json
from situate.files.contents import contents, graph_name
from situate.sharding.problem import ShardingProblem

HEAD = re.compile(rb'(\xef\xbb\xbf)?\s*\{\s*"problem"\s*:\s*\{\s*"(edges|name|nodes|usage_limit)"')
LARGEST = 2**62
"""Largest number in a file; sums of two stay within 64 bits."""


class _Nodes(msgspec.Struct, forbid_unknown_fields=True):
    intervals: list[tuple[int, int]]
    costs: list[list[int]]
    usages: list[list[int]]


class _Edges(msgspec.Struct, forbid_unknown_fields=True):
    nodes: list[list[int]]
    costs: list[list[int]]


class _Problem(msgspec.Struct, forbid_unknown_fields=True):
    nodes: _Nodes
    edges: _Edges
    usage_limit: int | None = None
    name: str = ""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    problem: _Problem


def is_sharding_problem(path: str | Path) -> bool:
    """True if a file begins like a problem of the contest."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(4096)
    except (OSError, ValueError):
        return False
    # The first bytes of gzip; 16 tells zlib of its header.
    if head.startswith(b"\x1f\x8b"):
        try:
            head = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(head, 4096)
        except zlib.error:
            return False
    return HEAD.match(head) is not None


def read_sharding_problem(path: str | Path) -> ShardingProblem:
    """The problem in a file of the contest.

    Edges of the same two ops become one, and an edge from an op to itself a cost of the op.

    Raises:
        SituateError: the file cannot be read; names the file and the place in it.
    """
    path = Path(path)
    try:
        problem = strict_json.decode(contents(path), _File, unique=False).problem
        return _problem(problem, graph_name(path))
    except ReadError as error:
        raise SituateError(f"{path}: {error}") from None


def _problem(file: _Problem, name: str) -> ShardingProblem:
    nodes, edges = file.nodes, file.edges
    count = len(nodes.costs)
    if not count:
        raise ReadError("nodes.costs: there is no op")
    for key, rows in (("intervals", nodes.intervals), ("usages", nodes.usages)):
        if len(rows) != count:
            raise ReadError(f"nodes.{key}: {len(rows)} rows for {count} ops")
    costs = [_numbers(row, f"nodes.costs[{i}]") for i, row in enumerate(nodes.costs)]
    usages = [_numbers(row, f"nodes.usages[{i}]") for i, row in enumerate(nodes.usages)]
    for i, (cost, usage) in enumerate(zip(costs, usages, strict=True)):
        if not len(cost) or len(cost) != len(usage):
            raise ReadError(f"op {i}: {len(cost)} costs and {len(usage)} usages of its strategies")
        if usage.min() < 0:
            raise ReadError(f"nodes.usages[{i}]: must not be negative, got {usage.min()}")
    _check_loads(usages)
    tables = _tables(edges, costs)
    return ShardingProblem(
        file.name or name,
        costs,
        usages,
        _intervals(nodes.intervals),
        tuple(tables),
        tuple(tables.values()),
        _limit(file.usage_limit),
    )


def _numbers(row: list[int], place: str) -> np.ndarray:
    if row and not -LARGEST <= min(row) <= max(row) <= LARGEST:
        raise ReadError(f"{place}: holds a number beyond 2^62")
    return np.array(row, np.int64)


def _intervals(rows: list[tuple[int, int]]) -> np.ndarray:
    for i, row in enumerate(rows):
        if not all(abs(time) <= LARGEST for time in row):
            raise ReadError(f"nodes.intervals[{i}]: holds a number beyond 2^62")
    return np.array(rows, np.int64).reshape(-1, 2)


def _check_loads(usages: list[np.ndarray]) -> None:
    if sum(int(usage.max()) for usage in usages) > LARGEST:
        raise ReadError("nodes.usages: all ops together use more than 2^62 bytes")


def _limit(limit: int | None) -> int:
    """The limit; without one, more than strategies can use."""
    if limit is None:
        return LARGEST
    if limit < 0:
        raise ReadError(f"usage_limit: must not be negative, got {limit}")
    return min(limit, LARGEST)


def _tables(edges: _Edges, costs: list[np.ndarray]) -> dict[tuple[int, int], np.ndarray]:
    """By pair of ops, the costs of their strategies. Costs of an op alone are added to its own."""
    if len(edges.nodes) != len(edges.costs):
        raise ReadError(f"edges.costs: {len(edges.costs)} tables for {len(edges.nodes)} edges")
    tables: dict[tuple[int, int], np.ndarray] = {}
    for k, (pair, row) in enumerate(zip(edges.nodes, edges.costs, strict=True)):
        if len(pair) != 2 or not all(0 <= op < len(costs) for op in pair):
            raise ReadError(f"edges.nodes[{k}]: must name two of {len(costs)} ops, got {pair}")
        a, b = pair
        size = len(costs[a]) * len(costs[b])
        if len(row) != size:
            raise ReadError(f"edges.costs[{k}]: {len(row)} numbers for {size} pairs of strategies")
        table = _numbers(row, f"edges.costs[{k}]").reshape(len(costs[a]), len(costs[b]))
        if a == b:
            costs[a] = _sum(costs[a], table.diagonal())
            continue
        # Tables of both directions add up, with the lower op first.
        key, table = ((a, b), table) if a < b else ((b, a), table.T)
        tables[key] = _sum(tables[key], table) if key in tables else np.ascontiguousarray(table)
    return tables


def _sum(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The sum of costs; above 2^62, which is forbidden anyhow, 2^62."""
    total: np.ndarray = np.clip(one + other, -LARGEST, LARGEST)
    return total
