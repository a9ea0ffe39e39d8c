"""Folders of graphs for training a policy."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from msgspec.structs import replace as replaced

from situate.data.cluster import Cluster
from situate.data.graph import BYTES_LIMIT, Graph, Op, Tensor
from situate.data.problem import Objective, Problem
from situate.data.rules import find_rules
from situate.errors import MissingExtra, SituateError, plural
from situate.readers import read

Report = Callable[[str], None]

NOISE = (0.5, 1.5)
"""Bounds of the uniform factors of a copy's times and sizes (REGAL, A.1.2)."""


@dataclass(frozen=True)
class Machine:
    """The cluster, rules and objective of all problems of a training."""

    cluster: Cluster
    rules: str
    objective: Objective

    def problem(self, graph: Graph) -> Problem:
        """
        Raises:
            SituateError: the graph cannot be planned for this machine.
        """
        return Problem(graph, self.cluster, self.objective, find_rules(self.rules))


@dataclass(frozen=True, eq=False)
class DataSet:
    """The graphs of a folder.

    Attributes:
        graphs: sorted by the names of their files.
        skipped: number of skipped files by reason.
    """

    graphs: list[Graph]
    skipped: Counter[str]

    @property
    def hash(self) -> str:
        """SHA-256 of the hashes of all graphs, in hexadecimal."""
        return hashlib.sha256("".join(graph.hash for graph in self.graphs).encode()).hexdigest()


def read_data(
    folder: str | Path, machine: Machine, report: Report, hashes: set[str] | None = None
) -> DataSet:
    """The graphs of all files of a folder.

    Files without a graph are reported, skipped and counted. So are graphs that are duplicates,
    cannot be planned, have a single op or have nothing to optimise.

    Args:
        folder: with files of any format that situate reads.
        machine: of the problems.
        report: called with a line for each skipped file, and for the counts.
        hashes: of graphs that count as duplicates; the hashes of new graphs are added.

    Raises:
        MissingExtra: a format needs a package that is not installed.
        SituateError: there is no such folder, or no usable graph in it.
    """
    data = DataSet([], Counter())
    visited = set[str]() if hashes is None else hashes
    for path in _files(Path(folder)):
        graph, reason, line = _read_graph(path, machine, visited)
        if graph is not None and not reason:
            data.graphs.append(graph)
            visited.add(graph.hash)
            continue
        data.skipped[reason] += 1
        report(f"skipped: {line}")
    _report_counts(data, folder, report)
    return data


def _read_graph(path: Path, machine: Machine, visited: set[str]) -> tuple[Graph | None, str, str]:
    """(graph of a file, reason to skip it or an empty string, line for the report)."""
    try:
        graph = read(path)
    except MissingExtra:
        # Without its package every file of a format would be skipped as broken.
        raise
    except SituateError as error:
        return None, "broken", str(error)
    try:
        reason = _reason(machine.problem(graph), visited)
    except SituateError as error:
        return graph, "that cannot be planned", f"{path}: {error}"
    return graph, reason, f"{path}: {reason}"


def _report_counts(data: DataSet, folder: str | Path, report: Report) -> None:
    if not data.graphs:
        raise SituateError(f"{folder}: holds no graph to train on: give a folder of graph files")
    if data.skipped:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in data.skipped.items())
        report(f"{folder}: {plural(len(data.graphs), 'graph')}; skipped: {counts}")


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_file())
    except OSError as error:
        raise SituateError(f"{folder}: cannot be read: {error.strerror or error}") from None


def _reason(problem: Problem, visited: set[str]) -> str:
    """The reason to skip a graph; empty for a usable one."""
    if problem.n < 2:
        return "of a single op"
    if problem.objective == "time" and not problem.fastest.any():
        return "without times"
    if problem.objective == "memory" and not (problem.size.any() or problem.persistent.any()):
        return "without sizes"
    return "twice" if problem.graph.hash in visited else ""


def copied(graph: Graph, seed: int) -> Graph:
    """A copy whose times and sizes are multiplied by uniform noise.

    Each op has one draw for its time and one for its bytes, including resident tensors. Every other
    tensor has one draw for its size and the time of its transfer.
    """
    draw = np.random.default_rng(seed)
    of_time, of_bytes = draw.uniform(*NOISE, (2, len(graph.ops))).tolist()
    of_tensors = draw.uniform(*NOISE, len(graph.tensors)).tolist()
    ops = [_op(op, *noise) for op, *noise in zip(graph.ops, of_time, of_bytes, strict=True)]
    tensors = [
        _tensor(tensor, of_bytes[tensor.producer] if tensor.resident else noise)
        for tensor, noise in zip(graph.tensors, of_tensors, strict=True)
    ]
    return replace(graph, ops=tuple(ops), tensors=tuple(tensors))


def _op(op: Op, of_time: float, of_bytes: float) -> Op:
    return replaced(
        op,
        flops=_whole(op.flops, of_time),
        traffic=_whole(op.traffic, of_time),
        seconds=op.seconds and {key: of_time * value for key, value in op.seconds.items()},
        persistent=_whole(op.persistent, of_bytes),
        workspace=_whole(op.workspace, of_bytes),
    )


def _tensor(tensor: Tensor, noise: float) -> Tensor:
    seconds = None if tensor.seconds is None else tensor.seconds * noise
    return replaced(tensor, size=_whole(tensor.size, noise), seconds=seconds)


def _whole(number: int, noise: float) -> int:
    """A number times noise, rounded; a positive number stays positive, because a tensor of zero
    bytes would be a signal."""
    return min(max(round(number * noise), min(number, 1)), BYTES_LIMIT)
