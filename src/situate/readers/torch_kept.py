"""Graphs of users' functions on disk, found again without importing what they were captured of."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from situate.graph import Graph
from situate.readers import cache
from situate.readers.cache import Key
from situate.readers.torch_function import versions


def find(text: str, optimizer: str) -> Graph | None:
    """The graph of `package.module:function` if nothing it was captured from has changed.

    Modules are found as Python would find them now, so the current directory is to be among
    `sys.path` if the function may lie there.
    """
    key = _key(text, optimizer)
    files = cache.find_files(key)
    return cache.find(_with_sources(key, files)) if files else None


def keep(text: str, optimizer: str, module: ModuleType, graph: Graph) -> None:
    """Let `find` find a graph until the function's module, or a loaded one of the current
    directory, changes."""
    key, files = _key(text, optimizer), _files(module)
    cache.keep(_with_sources(key, files), graph)
    cache.keep_files(key, files)


def _key(text: str, optimizer: str) -> Key:
    return {
        "function": text,
        "optimizer": optimizer,
        "packages": versions("torch", "transformers"),
        "folder": str(Path.cwd()),
        "package": _place(text.partition(":")[0].partition(".")[0]),
    }


def _place(package: str) -> str:
    """Where Python finds a package or a module, as far as can be told without importing it."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return ""
    return str(spec and (spec.origin, list(spec.submodule_search_locations or ())))


def _with_sources(key: Key, files: Iterable[Path]) -> Key:
    digest = hashlib.sha256()
    for file in sorted(files):
        content = file.read_bytes() if file.is_file() else b""
        digest.update(str(file).encode() + b"\0" + hashlib.sha256(content).digest())
    return {**key, "sources": digest.hexdigest()}


def _files(module: ModuleType) -> list[Path]:
    """Of the module and of every loaded one of the current directory."""
    loaded = {Path(f) for m in [*sys.modules.values()] if (f := getattr(m, "__file__", None))}
    own = {Path(module.__file__)} if module.__file__ else set()
    return sorted(own | {file for file in loaded if _is_local(file)})


def _is_local(file: Path) -> bool:
    return file.is_relative_to(Path.cwd()) and "site-packages" not in file.parts
