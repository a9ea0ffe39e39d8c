"""A graph as a file of its own: JSON, one op or tensor a line. See docs/graph-format.md."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path

import msgspec

from situate.data.graph import Graph
from situate.files.atomic import write_bytes
from situate.files.strict_json import plain

FORMAT = "situate-graph"
VERSION = 1


class NamedTensor(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A `Tensor` with ops' names for producer and consumers."""

    name: str
    producer: str
    size: int
    consumers: list[str] = []
    output: bool = False
    resident: bool = False
    seconds: float | None = None


def write(graph: Graph, path: str | Path) -> None:
    """Write the graph; gzipped if the path ends in `.gz`. The same graph gives the same bytes.

    Raises:
        SituateError: the path cannot be written; nothing is left half-written.
    """
    data = encode(graph)
    if str(path).endswith(".gz"):
        data = gzip.compress(data, compresslevel=6, mtime=0)
    write_bytes(path, data)


def encode(graph: Graph) -> bytes:
    """The content of the file."""
    names = [op.name for op in graph.ops]
    parts = {
        "format": _json(FORMAT),
        "version": _json(VERSION),
        "name": _json(graph.name),
        "unit": _json(graph.unit),
        "rules": _json(graph.rules),
        "source": _json(graph.source),
        "machine": _lines(graph.machine),
        "ops": _lines(graph.ops),
        "tensors": _lines(_named_tensors(graph, names)),
        "control": _lines((names[before], names[after]) for before, after in graph.control),
        "warnings": _lines(graph.warnings),
    }
    if graph.optimizer is not None:
        parts["optimizer"] = _json(graph.optimizer)
    if graph.slices is not None:
        parts["slices"] = _json(graph.slices)
    if graph.recompute:
        parts["recompute"] = _json(graph.recompute)
    if graph.cuts is not None:
        parts["cuts"] = _json(graph.cuts)
    if graph.cut_parameters:
        parts["cut_parameters"] = _lines(graph.cut_parameters)
    lines = (_json(key) + b": " + value for key, value in parts.items())
    return b"{\n" + b",\n".join(lines) + b"\n}\n"


def _named_tensors(graph: Graph, names: list[str]) -> Iterable[NamedTensor]:
    for tensor in graph.tensors:
        yield NamedTensor(
            tensor.name,
            names[tensor.producer],
            tensor.size,
            [names[consumer] for consumer in tensor.consumers],
            tensor.output,
            tensor.resident,
            tensor.seconds,
        )


def _json(value: object) -> bytes:
    """JSON that may stand inside a script element of a web page."""
    return msgspec.json.encode(value, enc_hook=plain).replace(b"</", rb"<\/")


def _lines(values: Iterable[object]) -> bytes:
    lines = b",\n".join(map(_json, values))
    return b"[\n" + lines + b"\n]" if lines else b"[]"
