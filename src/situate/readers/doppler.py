"""The text format of DOPPLER's graphs (Yao et al., "DOPPLER: Dual-Policy Learning for Device
Assignment in Asynchronous Dataflow Graphs"). See docs/formats/doppler.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from situate.data.graph import Graph, Op, Tensor
from situate.errors import ReadError
from situate.files.contents import lines
from situate.files.strict_json import Keys
from situate.readers.quantity import amount, whole

SCALE = 1e10
"""The authors' simulator divides every makespan by this; here every cost is divided."""


def recognises(data: bytes, keys: Keys) -> bool:
    """True if the content is a count alone on its line, then a line of ids with commas."""
    return bool(re.match(rb"\s*\d+[ \t]*\r?\n[ \t]*\d+[ \t]*,[ \t\d,]*\r?\n", data[:65536]))


def read(data: bytes, name: str) -> Graph:
    """The graph: an op per line of costs; times have no unit.

    Edges count the lines of costs, from 0, and an op's name is that number. Inputs take no part in
    edges and are on every device, so they are no ops.

    Raises:
        ReadError: missing lines, counts that do not agree, an edge to an op that is not there.
        GraphError: the graph breaks its own rules.
    """
    rows = lines(data)
    head = list(islice(rows, 4))
    if len(head) < 4:
        raise ReadError(f"has {len(head)} lines; at least 5 are needed: is it truncated?")
    nodes = whole(head[0].strip(), "line 1: number of nodes")
    inputs = _ids(head[1], 2, nodes)
    count = nodes - len(inputs)
    # There are at most as many edges as pairs of ops.
    sources, targets = (_ids(line, i, count**2) for i, line in enumerate(head[2:], start=3))
    costs = _all_costs(rows, count)
    if len(costs) != count:
        raise ReadError(
            f"{nodes} nodes less {len(inputs)} inputs need {count} lines of costs, there are "
            + ("more" if len(costs) > count else f"{len(costs)}: is it truncated?")
        )
    consumers = _consumers(sources, targets, count)
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


def _ids(line: str, number: int, most: int) -> list[int]:
    """The numbers of a line, at most `most`."""
    # One more than allowed is enough to refuse the line.
    tokens = islice(re.finditer(r"[^\s,]+", line), min(most, len(line)) + 1)
    ids = [whole(token[0], f"line {number}: id") for token in tokens]
    if len(ids) > most:
        raise ReadError(f"line {number}: lists more than {most} ids, which are all there can be")
    return ids


def _all_costs(rows: Iterator[str], count: int) -> list[tuple[float, float, str]]:
    """Costs of `count` ops, and of one more if the file has more."""
    filled = ((i, row) for i, row in enumerate(rows, start=5) if row.strip())
    return [_costs(row, i) for i, row in islice(filled, count + 1)]


def _costs(line: str, number: int) -> tuple[float, float, str]:
    """Time of the op, time of its result's transfer, kind."""
    columns = [column.strip() for column in line.split(",")]
    if len(columns) not in (2, 3):
        raise ReadError(f"line {number}: must be: compute,comm or compute,comm,type")
    compute, transfer = (amount(c, f"line {number}: cost") / SCALE for c in columns[:2])
    return compute, transfer, (columns[2] if len(columns) == 3 else "") or "op"


def _consumers(sources: Sequence[int], targets: Sequence[int], ops: int) -> list[dict[int, None]]:
    """The consumers of every op, each once."""
    if len(sources) != len(targets):
        raise ReadError(f"lines 3 and 4 list {len(sources)} sources and {len(targets)} heads")
    consumers: list[dict[int, None]] = [{} for _ in range(ops)]
    for source, target in zip(sources, targets, strict=True):
        if max(source, target) >= ops:
            raise ReadError(f"edge {source} -> {target}: there are {ops} ops, counted from 0")
        consumers[source][target] = None
    return consumers
