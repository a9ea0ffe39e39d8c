"""Captured graphs on disk, because the capture of a large model takes a minute. The graph of a
user's function is found again without an import of the function."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import msgspec

from situate.data.cuts import Cuts
from situate.data.graph import Graph
from situate.data.graph_json import VERSION as FORMAT_VERSION
from situate.data.graph_json import write
from situate.data.slices import Slices
from situate.errors import SituateError
from situate.files.atomic import write_bytes
from situate.files.contents import contents
from situate.host.machine import process_start
from situate.readers import situate_json
from situate.torch_capture.function import versions
from situate.version import VERSION

T = TypeVar("T")

Key = Mapping[str, str]
"""The source and the options of a captured graph, by name."""

CAPTURES = "products of groups and of 8 bits, buffers in order, caches, FLOPs warned of, generators"
"""Changes whenever the same model is captured as another graph."""


def directory() -> Path:
    """`situate` under $XDG_CACHE_HOME, or under ~/.cache.

    Raises:
        SituateError: neither exists; nothing is cached then.
    """
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "situate"
    except RuntimeError:
        raise SituateError("there is no home directory: set XDG_CACHE_HOME") from None


def cached(key: Key, capture: Callable[[], Graph]) -> Graph:
    """The graph that was stored under the same key, otherwise a new one, which is stored."""
    if (graph := _find_graph(key)) is None:
        graph = capture()
        keep(key, graph)
    return graph


def slices_key(slices: Slices | None) -> dict[str, str]:
    """The part of a key that names the slices of a step's batch, if there are any."""
    if slices is None:
        return {}
    # Shares of 2 and 2 cut a batch where 1 and 1 do, so they share a key.
    common = math.gcd(*slices.shares)
    reduced = msgspec.structs.replace(slices, shares=tuple(s // common for s in slices.shares))
    return {"slices": msgspec.json.encode(reduced).decode()}


def recompute_key(recompute: Sequence[str]) -> dict[str, str]:
    """The part of a key that names the modules that run again, if there are any."""
    return {"recompute": ",".join(recompute)} if recompute else {}


def cuts_key(cuts: Cuts | None) -> dict[str, str]:
    """The part of a key that names the cuts of ops, if there are any."""
    if cuts is None:
        return {}
    # The second entry changes whenever graphs say more about their cuts.
    return {"cuts": msgspec.json.encode(cuts).decode(), "cut parameters": "ranges and readers"}


def _find_graph(key: Key) -> Graph | None:
    """The graph that was stored under this key; None if its file is missing or damaged."""
    with contextlib.suppress(SituateError):
        path = _graph(key)
        return situate_json.read(contents(path), path.name)
    return None


def keep(key: Key, graph: Graph) -> None:
    """Store a graph for the next `cached`. A folder that cannot be written is no error."""
    with contextlib.suppress(SituateError, OSError):
        write(graph, _with_folder(_graph(key)))


def find_note(key: Key, kind: type[T]) -> T | None:
    """The note that was stored under this key; None if its file is missing or damaged."""
    with contextlib.suppress(ValueError, RecursionError):  # msgspec's errors, and ours
        return msgspec.json.decode(contents(_note(key)), type=kind)
    return None


def keep_note(key: Key, note: object) -> None:
    """Store a note for `find_note`. A folder that cannot be written is no error; nor is text that
    JSON cannot hold, such as a path that is not UTF-8."""
    with contextlib.suppress(SituateError, OSError, UnicodeEncodeError):
        write_bytes(_with_folder(_note(key)), msgspec.json.encode(note))


def _with_folder(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _graph(key: Key) -> Path:
    return directory() / f"{_digest(key)}.json.gz"


def _note(key: Key) -> Path:
    return directory() / f"{_digest(key)}.note.json"


def _digest(key: Key) -> str:
    """A digest of the key and of the versions of situate, its file format and its captures."""
    versions = {"situate": VERSION, "format": str(FORMAT_VERSION), "captures": CAPTURES}
    content = {**key, **versions}
    # Names and values hold no zero byte, so different keys are different texts.
    text = "\0".join(f"{name}={content[name]}" for name in sorted(content))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


PROCESS_START = process_start()

Source = tuple[str, str, str]
"""A module, its file, and the file that Python would load for it."""


def find_function_graph(
    text: str,
    optimizer: str,
    slices: Slices | None = None,
    recompute: Sequence[str] = (),
    cuts: Cuts | None = None,
) -> Graph | None:
    """The graph of `package.module:function`, if Python would still load the sources it was
    captured from.

    The current directory must be in `sys.path` if the function may lie there.
    """
    key = _function_key(text, optimizer, slices, recompute, cuts)
    sources = find_note(key, list[Source])
    if not sources or any(_place(name) != place for name, _, place in sources):
        return None
    try:
        return _find_graph(_with_contents(key, sources))
    except OSError:
        return None


class Loading:
    """Records the modules that are loaded from now on."""

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
        cuts: Cuts | None = None,
    ) -> None:
        """Store a graph until its sources change: the function's module and all loaded modules of
        the current directory.

        The graph is not stored if a source was written after it was loaded, or cannot be read.
        """
        sources = _sources(module)
        key = _function_key(text, optimizer, slices, recompute, cuts)
        try:
            full = _with_contents(key, sources)
            stale = any(os.path.getmtime(file) > self._loaded(name) for name, file, _ in sources)
        except OSError:
            return
        if not stale:
            keep(full, graph)
            keep_note(key, sources)

    def _loaded(self, name: str) -> float:
        """A time in seconds before which the module was not loaded."""
        if name not in self._before:
            return self._now
        return -math.inf if PROCESS_START is None else PROCESS_START


def _function_key(
    text: str,
    optimizer: str,
    slices: Slices | None,
    recompute: Sequence[str],
    cuts: Cuts | None,
) -> Key:
    return {
        "function": text,
        "optimizer": optimizer,
        "packages": versions("torch", "transformers"),
        "folder": str(Path.cwd()),
        **slices_key(slices),
        **recompute_key(recompute),
        **cuts_key(cuts),
    }


def _place(name: str) -> str:
    """The file in which Python finds a module by the path alone; empty if it finds none."""
    path: Sequence[str] | None = None
    origin, parts = "", name.split(".")
    # `PathFinder` reads folders only. `importlib.util.find_spec` would import the packages around.
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
    """The module and every loaded module of the current directory."""
    # A copy of the table, which another thread may change by an import.
    loaded = ((name, getattr(m, "__file__", None)) for name, m in [*sys.modules.items()])
    files = {name: file for name, file in loaded if file and _is_local(Path(file))}
    if module.__file__:
        files[module.__name__] = module.__file__
    return [(name, file, _place(name)) for name, file in sorted(files.items())]


def _is_local(file: Path) -> bool:
    return file.is_relative_to(Path.cwd()) and "site-packages" not in file.parts
