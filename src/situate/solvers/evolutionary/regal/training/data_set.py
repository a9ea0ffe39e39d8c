"""Folders of graphs that a policy is trained on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from msgspec.structs import replace as replaced

from situate.data.graph import BYTES_LIMIT, Graph, Op
from situate.errors import SituateError
from situate.readers import read

Report = Callable[[str], None]

NOISE = (0.5, 1.5)
"""Bounds of the uniform factors of a copy's times and sizes (REGAL, A.1.2)."""


@dataclass(frozen=True, eq=False)
class DataSet:
    """
    Attributes:
        graphs: of a folder, by the names of their files.
        skipped: how many files were not taken, by the reason.
    """

    graphs: list[Graph]
    skipped: dict[str, int] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        """SHA-256 of the hashes of all graphs, in hexadecimal."""
        return hashlib.sha256("".join(graph.hash for graph in self.graphs).encode()).hexdigest()


def read_data(folder: str | Path, report: Report, known: set[str] | None = None) -> DataSet:
    """The graphs of all files of a folder. Files that cannot be read and graphs of one op, without
    times or sizes, or that are there already are reported, skipped and counted.

    Args:
        folder: whose files are of any format that situate reads.
        report: is told of each file that is skipped, in a line.
        known: hashes of graphs that count as there already; those that are read are added.

    Raises:
        SituateError: there is no such folder, or no graph in it.
    """
    graphs, skipped = list[Graph](), dict[str, int]()
    seen = set[str]() if known is None else known
    for path in _files(Path(folder)):
        try:
            graph = read(path)
            reason = _reason(graph, seen)
        except SituateError as error:
            graph, reason = None, "broken"
            report(f"skipped: {error}")
        if graph is not None and not reason:
            graphs.append(graph)
            seen.add(graph.hash)
            continue
        if graph is not None:
            report(f"skipped: {path}: {reason}")
        skipped[reason] = skipped.get(reason, 0) + 1
    if not graphs:
        raise SituateError(f"{folder}: holds no graph to train on: give a folder of graph files")
    return DataSet(graphs, skipped)


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_file())
    except OSError as error:
        raise SituateError(f"{folder}: cannot be read: {error.strerror or error}") from None


def _reason(graph: Graph, seen: set[str]) -> str:
    """The reason why a graph is not taken; empty where it is."""
    if len(graph.ops) < 2:
        return "of a single op"
    if not any(op.flops or op.traffic or any((op.seconds or {}).values()) for op in graph.ops):
        return "without times"
    return "twice" if graph.hash in seen else ""


def copied(graph: Graph, seed: int) -> Graph:
    """A copy whose times and sizes are multiplied by uniform noise: one draw for the time of an op,
    one for what it holds, with tensors that are a part of that, and one for every other tensor."""
    draw = np.random.default_rng(seed)
    of_time, held = draw.uniform(*NOISE, (2, len(graph.ops))).tolist()
    of_tensors = draw.uniform(*NOISE, len(graph.tensors)).tolist()
    ops = [_op(op, *noise) for op, *noise in zip(graph.ops, of_time, held, strict=True)]
    tensors = [
        replaced(
            tensor, size=_bytes(tensor.size, held[tensor.producer] if tensor.resident else noise)
        )
        for tensor, noise in zip(graph.tensors, of_tensors, strict=True)
    ]
    return replace(graph, ops=tuple(ops), tensors=tuple(tensors))


def _op(op: Op, of_time: float, held: float) -> Op:
    return replaced(
        op,
        flops=_bytes(op.flops, of_time),
        traffic=_bytes(op.traffic, of_time),
        seconds=op.seconds and {key: of_time * value for key, value in op.seconds.items()},
        persistent=_bytes(op.persistent, held),
        workspace=_bytes(op.workspace, held),
    )


def _bytes(size: int, noise: float) -> int:
    """A whole number, which stays above zero: a tensor of no bytes would be a signal."""
    return min(max(round(size * noise), min(size, 1)), BYTES_LIMIT)
