"""Captured graphs on disk, because capturing a large model takes a minute."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from situate.data.graph import Graph
from situate.data.graph_json import VERSION as FORMAT_VERSION
from situate.data.graph_json import write
from situate.data.slices import Slices
from situate.errors import SituateError
from situate.files.atomic import write_bytes
from situate.files.contents import contents
from situate.readers import situate_json
from situate.version import VERSION

T = TypeVar("T")

Key = Mapping[str, str]
"""The source and the options of a captured graph, by name."""

CAPTURES = "products of groups and of 8 bits, buffers in order, caches, FLOPs warned of, generators"
"""Another word whenever the same model is captured as another graph."""


def directory() -> Path:
    """`situate` under $XDG_CACHE_HOME, or under ~/.cache.

    Raises:
        SituateError: there is neither; then nothing is kept.
    """
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "situate"
    except RuntimeError:
        raise SituateError("there is no home directory: set XDG_CACHE_HOME") from None


def cached(key: Key, capture: Callable[[], Graph]) -> Graph:
    """The graph that was captured under the same key, else a new one, kept for the next time."""
    if (graph := find(key)) is None:
        graph = capture()
        keep(key, graph)
    return graph


def sliced(slices: Slices | None) -> dict[str, str]:
    """The part of a key that names the slices of a step's batch, where there are any."""
    if slices is None:
        return {}
    common = math.gcd(*slices.shares)
    named = msgspec.structs.replace(slices, shares=tuple(s // common for s in slices.shares))
    return {"slices": msgspec.json.encode(named).decode()}


def repeated(recompute: Sequence[str]) -> dict[str, str]:
    """The part of a key that names the modules that run again, where there are any."""
    return {"recompute": ",".join(recompute)} if recompute else {}


def find(key: Key) -> Graph | None:
    """The graph that was kept under this key; None also where its file is damaged."""
    with contextlib.suppress(SituateError):
        path = _graph(key)
        return situate_json.read(contents(path), path.name)
    return None


def keep(key: Key, graph: Graph) -> None:
    """Let `find` find a graph; a folder that cannot be written is no error."""
    with contextlib.suppress(SituateError, OSError):
        write(graph, _made(_graph(key)))


def find_note(key: Key, kind: type[T]) -> T | None:
    """The note stored under this key; None also where the file is damaged."""
    with contextlib.suppress(ValueError, RecursionError):  # msgspec's errors, and ours
        return msgspec.json.decode(contents(_note(key)), type=kind)
    return None


def keep_note(key: Key, note: object) -> None:
    """Let `find_note` find a note; a folder that cannot be written is no error, nor is a text that
    JSON cannot hold, such as a path that is no UTF-8."""
    with contextlib.suppress(SituateError, OSError, UnicodeEncodeError):
        write_bytes(_made(_note(key)), msgspec.json.encode(note))


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _graph(key: Key) -> Path:
    return directory() / f"{_digest(key)}.json.gz"


def _note(key: Key) -> Path:
    return directory() / f"{_digest(key)}.note.json"


def _digest(key: Key) -> str:
    """The versions of situate and of its captures are part of every key."""
    versions = {"situate": VERSION, "format": str(FORMAT_VERSION), "captures": CAPTURES}
    content = {**key, **versions}
    text = "\0".join(f"{name}={content[name]}" for name in sorted(content))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]
