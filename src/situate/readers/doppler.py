"""The text format of DOPPLER's graphs (Yao et al., "DOPPLER: Dual-Policy Learning for Device
Assignment in Asynchronous Dataflow Graphs"). See docs/formats/doppler.md."""

from __future__ import annotations

import re
from collections.abc import Sequence

from situate.errors import ReadError
from situate.graph import Graph, Op, Tensor
from situate.readers.contents import text
from situate.readers.quantity import amount, whole
from situate.readers.strict_json import Keys

SCALE = 1e10
"""The authors' simulator divides every makespan by this; here every cost is divided."""


def recognises(data: bytes, keys: Keys) -> bool:
    """Whether the content is a count alone on its line, then a line of ids with commas."""
    return bool(re.match(rb"\s*\d+[ \t]*\r?\n[ \t]*\d+[ \t]*,[ \t\d,]*\r?\n", data[:65536]))


def read(data: bytes, name: str) -> Graph:
    """The graph: an op per line of costs; times have no unit.

    Edges count the lines of costs, from 0, and an op's name is that number. Inputs take no part in
    edges and are on every device, so they are no ops.

    Raises:
        ReadError: missing lines, counts that do not agree, an edge to an op that is not there.
        GraphError: the graph breaks its own rules.
    """
    lines = text(data).splitlines()
    if len(lines) < 5:
        raise ReadError(f"has {len(lines)} lines; at least 5 are needed: is it truncated?")
    nodes = whole(lines[0].strip(), "line 1: number of nodes")
    inputs, sources, targets = (_ids(line, i) for i, line in enumerate(lines[1:4], start=2))
    costs = [_costs(line, i) for i, line in enumerate(lines[4:], start=5) if line.strip()]
    if nodes - len(inputs) != len(costs):
        raise ReadError(
            f"{nodes} nodes less {len(inputs)} inputs need {nodes - len(inputs)} lines of costs, "
            f"there are {len(costs)}"
        )
    consumers = _consumers(sources, targets, len(costs))
    ops = (Op(str(j), kind, seconds={"*": time}) for j, (time, _, kind) in enumerate(costs))
    return Graph(
        name=name,
        ops=tuple(ops),
        tensors=tuple(
            Tensor(str(j), j, 0, tuple(after), seconds=costs[j][1])
            for j, after in enumerate(consumers)
            if after
        ),
        unit="",
        rules="doppler",
        source="doppler",
    )


def _ids(line: str, number: int) -> list[int]:
    return [whole(token, f"line {number}: id") for token in line.replace(",", " ").split()]


def _costs(line: str, number: int) -> tuple[float, float, str]:
    """Time of the op, time of its result's transfer, kind."""
    columns = [column.strip() for column in line.split(",")]
    if len(columns) not in (2, 3):
        raise ReadError(f"line {number}: must be: compute,comm or compute,comm,type")
    compute, transfer = (amount(c, f"line {number}: cost") / SCALE for c in columns[:2])
    return compute, transfer, (columns[2] if len(columns) == 3 else "") or "op"


def _consumers(sources: Sequence[int], targets: Sequence[int], ops: int) -> list[dict[int, None]]:
    """For every op those that need its result, each once."""
    if len(sources) != len(targets):
        raise ReadError(f"lines 3 and 4 list {len(sources)} sources and {len(targets)} heads")
    consumers: list[dict[int, None]] = [{} for _ in range(ops)]
    for source, target in zip(sources, targets, strict=True):
        if max(source, target) >= ops:
            raise ReadError(f"edge {source} -> {target}: there are {ops} ops, counted from 0")
        consumers[source][target] = None
    return consumers
