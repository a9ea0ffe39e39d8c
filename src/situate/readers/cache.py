"""Captured graphs on disk, because capturing a large model takes a minute."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from situate.errors import SituateError
from situate.graph import Graph
from situate.readers import situate_json
from situate.readers.contents import contents
from situate.version import VERSION
from situate.writers.situate_json import write

CAPTURES = "signed"
"""Another word whenever the same model is captured as another graph."""


def directory() -> Path:
    """`situate` under $XDG_CACHE_HOME, or under ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "situate"


def cached(key: Mapping[str, str], capture: Callable[[], Graph]) -> Graph:
    """The graph that was captured under the same key, else a new one, kept for the next time.

    A damaged file is captured anew; a folder that cannot be written is no error.
    """
    path = _path(key)
    with contextlib.suppress(SituateError):
        return situate_json.read(contents(path), path.name)
    graph = capture()
    keep(key, graph)
    return graph


def keep(key: Mapping[str, str], graph: Graph) -> None:
    """Let `cached` find a graph under this key; a folder that cannot be written is no error."""
    path = _path(key)
    with contextlib.suppress(SituateError, OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write(graph, path)


def _path(key: Mapping[str, str]) -> Path:
    return directory() / f"{_digest(key)}.json.gz"


def _digest(key: Mapping[str, str]) -> str:
    """The versions of situate and of its captures are part of every key."""
    versions = {"situate": VERSION, "format": str(situate_json.VERSION), "captures": CAPTURES}
    content = {**key, **versions}
    text = "\0".join(f"{name}={content[name]}" for name in sorted(content))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
