"""Two files that are one graph, as `a.json+b.json`: an execution trace and its Kineto trace."""

from __future__ import annotations

import os
from pathlib import Path

from situate.data.graph import Graph
from situate.errors import ReadError
from situate.files.contents import contents, graph_name
from situate.readers import execution_trace
from situate.readers.recognise import recognise

PAIR_FORMATS = ["chrome-trace", "execution-trace"]


def files(text: str) -> tuple[Path, Path] | None:
    """The two files on both sides of a `+`; None if the text names no pair of files.

    Raises:
        ReadError: there is a file on one side only.
    """
    if "+" not in text or os.path.exists(text):
        return None
    places = [place for place, letter in enumerate(text) if letter == "+"]
    pairs = [(Path(text[:place]), Path(text[place + 1 :])) for place in places]
    exists = [(os.path.isfile(first), os.path.isfile(second)) for first, second in pairs]
    for pair, exist in zip(pairs, exists, strict=True):
        if all(exist):
            return pair
    for pair, exist in zip(pairs, exists, strict=True):
        if any(exist):
            # If the first exists, index 1 is that of the missing one, else 0.
            raise ReadError(f"{pair[exist[0]]}: no such file")
    return None


def read(first: Path, second: Path) -> Graph:
    """The execution trace, first or second, with the times of the Kineto trace.

    Raises:
        ReadError: the two are anything else, or not of one run.
        GraphError: the graph breaks its own rules.
    """
    data = {path: _contents(path) for path in (first, second)}
    formats = {path: recognise(data[path]) for path in (first, second)}
    if sorted(formats.values()) != PAIR_FORMATS:
        names = " and ".join(formats[path] for path in (first, second))
        raise ReadError(f"must be an execution trace and its Kineto trace, got {names}")
    # `execution-trace` comes after `chrome-trace`, so it is first in reverse.
    trace, times = sorted((first, second), key=lambda path: formats[path], reverse=True)
    return execution_trace.read(data[trace], graph_name(trace), data[times])


def _contents(path: Path) -> bytes:
    try:
        return contents(path)
    except ReadError as error:
        raise ReadError(f"{path}: {error}") from None
