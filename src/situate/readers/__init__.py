"""One file a format: each has `recognises(data, keys) -> bool` and `read(data, name) -> Graph`.

The formats are imported when a file is read, so that one of them can be used without the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from situate.data.graph import Graph
from situate.errors import GraphError, ReadError, nearest
from situate.files.contents import contents, graph_name, one_line
from situate.validation import check


def read(
    path: str | Path, format: str | None = None, dims: Mapping[str, int] | None = None
) -> Graph:
    """Read a graph from a file of any known format, gzipped or not.

    Args:
        path: the file; `a.json+b.json` for a PyTorch execution trace and its Kineto trace.
        format: a name from `READERS`; by default it is recognised by the file's content.
        dims: sizes of an ONNX file's open dimensions: symbolic ones by name, such as
            `{"batch": 8}`, and others by value and axis, such as `{"x.0": 8}`.

    Returns:
        The graph, in seconds and bytes. `Graph.source` names the format; `Graph.warnings` lists
        oddities of the file.

    Raises:
        ReadError, GraphError: one line that starts with the path.
        MissingExtra: the format needs a package that is not installed.
    """
    from situate.readers import pair

    try:
        check(format, str | None, "format", ReadError)
        check(dims, dict | None, "dims", ReadError)
        if files := pair.files(str(path)):
            return _read_pair(*files, format, dims)
        return _read(Path(path), format, dims)
    except (ReadError, GraphError) as error:
        raise type(error)(one_line(f"{path}: {error}")) from None


def _read(path: Path, format: str | None, dims: Mapping[str, int] | None) -> Graph:
    from situate.readers.recognise import READERS, recognise

    if format is not None and format not in READERS:
        raise ReadError(f"unknown format {format!r}{nearest(format, READERS)}")
    data = contents(path)
    format = format or recognise(data)
    if not dims:
        return READERS[format].read(data, graph_name(path))
    if format != "onnx":
        raise ReadError(f"dims are for ONNX files, this one is {format}")
    from situate.readers import onnx

    return onnx.read(data, graph_name(path), dims)


def _read_pair(
    first: Path, second: Path, format: str | None, dims: Mapping[str, int] | None
) -> Graph:
    from situate.readers import pair

    if format not in (None, "execution-trace"):
        raise ReadError(f"a pair of files is an execution-trace, not {format!r}")
    if dims:
        raise ReadError("dims are for ONNX files, this is a pair of traces")
    return pair.read(first, second)
