"""ONNX models. See docs/formats/onnx.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from situate.data.graph import Graph
from situate.errors import MissingExtra, ReadError
from situate.files.strict_json import Keys
from situate.readers import wire
from situate.readers.onnx.graph import check_flow, graph_of
from situate.readers.onnx.walk import infer


def recognises(data: bytes, keys: Keys) -> bool:
    """True if the content is a protocol buffer with a model's version number and graph."""
    message = wire.shape(data)
    # Fields of a `ModelProto`: 1 is `ir_version`, 7 is `graph`.
    return message is not None and message.get(1) == wire.VARINT and message.get(7) == wire.BYTES


def read(data: bytes, name: str, dims: Mapping[str, int] | None = None) -> Graph:
    """The graph of one inference: an op per node and per input, its work from inferred shapes.

    Weights are never loaded, nor is any file beside this one. `dims` gives sizes of dimensions of
    inputs that have none in the model, by their name or as `INPUT.AXIS`; one that it does not give
    is 1, with a warning. It also gives sizes that inference leaves open, as `VALUE.AXIS`, and trip
    counts, as `LOOP.iterations`.

    Raises:
        MissingExtra: onnx is not installed.
        ReadError: no ONNX model, external data outside the model's folder, a value without a shape,
            a value that no op makes, dims that the model does not have.
        GraphError: the graph breaks its own rules.
    """
    model = _parse(data)
    _check_text(model)
    _check_external(model)
    check_flow(model.graph)
    return graph_of(infer(model, dims or {}), name)


def _parse(data: bytes) -> Any:
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise MissingExtra("onnx", "onnx") from None
    try:
        return onnx.load_model_from_string(data)
    except (DecodeError, UnicodeDecodeError) as error:
        raise ReadError(f"is no ONNX model, or a truncated one: {error}") from None


def _check_text(message: Any) -> None:
    """Protocol buffers of ONNX's kind keep a text that is not UTF-8 as bytes."""
    for field, value in message.ListFields():
        values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        if field.type == field.TYPE_MESSAGE:
            for inner in values:
                _check_text(inner)
        elif field.type == field.TYPE_STRING and not all(isinstance(v, str) for v in values):
            raise ReadError(f"is no ONNX model, or a damaged one: a {field.name} is not UTF-8 text")


def _check_external(model: Any) -> None:
    """No tensor may keep its data outside the model's folder."""
    for tensor in tensors(model.graph, model.functions):
        for entry in tensor.external_data:
            paths = PurePosixPath(entry.value), PureWindowsPath(entry.value)
            outside = any(p.is_absolute() or p.drive or ".." in p.parts for p in paths)
            if entry.key == "location" and outside:
                raise ReadError(
                    f"tensor {tensor.name!r}: its external data lies outside the model's folder, "
                    f"at {entry.value!r}"
                )


def tensors(graph: Any, functions: Any = ()) -> Iterator[Any]:
    """All constants of the graph, its bodies and functions."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    nodes = [*graph.node, *(node for function in functions for node in function.node)]
    for attribute in (attribute for node in nodes for attribute in node.attribute):
        yield from (attribute.t, *attribute.tensors)
        yield from (attribute.sparse_tensor.values, attribute.sparse_tensor.indices)
        for body in (attribute.g, *attribute.graphs):
            yield from tensors(body)
