"""Graphs of users' functions on disk, found again without importing what they were captured of."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from situate.data.graph import Graph
from situate.data.slices import Slices
from situate.torch_capture import cache
from situate.torch_capture.cache import Key, repeated, sliced
from situate.torch_capture.function import versions

STARTED = time.time()

Source = tuple[str, str, str]
"""A module, its file, and where Python would find it."""


def find(
    text: str, optimizer: str, slices: Slices | None = None, recompute: Sequence[str] = ()
) -> Graph | None:
    """The graph of `package.module:function` if what Python would load for it is what it was
    captured from.

    The current directory is to be among `sys.path` if the function may lie there.
    """
    key = _key(text, optimizer, slices, recompute)
    sources = cache.find_note(key, list[Source])
    if not sources or any(_place(name) != place for name, _, place in sources):
        return None
    try:
        return cache.find(_with_contents(key, sources))
    except OSError:
        return None


class Loading:
    """Modules that are loaded from now on."""

    def __init__(self) -> None:
        self._before = frozenset(sys.modules)
        self._now = time.time()

    def keep(
        self,
        text: str,
        optimizer: str,
        module: ModuleType,
        graph: Graph,
        slices: Slices | None = None,
        recompute: Sequence[str] = (),
    ) -> None:
        """Let `find` find a graph until the function's module, or a loaded one of the current
        directory, changes. It is not kept if one was written since it was loaded, or cannot be
        read."""
        sources = _sources(module)
        key = _key(text, optimizer, slices, recompute)
        try:
            full = _with_contents(key, sources)
            stale = any(os.path.getmtime(file) > self._loaded(name) for name, file, _ in sources)
        except OSError:
            return
        if not stale:
            cache.keep(full, graph)
            cache.keep_note(key, sources)

    def _loaded(self, name: str) -> float:
        """A time before which a module was not loaded."""
        return STARTED if name in self._before else self._now


def _key(text: str, optimizer: str, slices: Slices | None, recompute: Sequence[str]) -> Key:
    return {
        "function": text,
        "optimizer": optimizer,
        "packages": versions("torch", "transformers"),
        "folder": str(Path.cwd()),
        **sliced(slices),
        **repeated(recompute),
    }


def _place(name: str) -> str:
    """The file that Python finds a module in by the path alone; empty if it does not."""
    path: Sequence[str] | None = None
    origin, parts = "", name.split(".")
    for i in range(len(parts)):
        spec = PathFinder.find_spec(".".join(parts[: i + 1]), path)
        if spec is None:
            return ""
        origin, path = spec.origin or "", spec.submodule_search_locations or ()
    return origin


def _with_contents(key: Key, sources: Sequence[Source]) -> Key:
    digest = hashlib.sha256()
    for _, file, _ in sources:
        digest.update(hashlib.sha256(Path(file).read_bytes()).digest())
    return {**key, "modules": repr(sources), "contents": digest.hexdigest()}


def _sources(module: ModuleType) -> list[Source]:
    """The module and every loaded one of the current directory."""
    loaded = ((name, getattr(m, "__file__", None)) for name, m in [*sys.modules.items()])
    files = {name: file for name, file in loaded if file and _is_local(Path(file))}
    if module.__file__:
        files[module.__name__] = module.__file__
    return [(name, file, _place(name)) for name, file in sorted(files.items())]


def _is_local(file: Path) -> bool:
    return file.is_relative_to(Path.cwd()) and "site-packages" not in file.parts
