"""Files of graphs and weights, and the hashes by which records name them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from msgspec import to_builtins

from benchmarks.lib.record import Row
from situate.readers import read
from situate.solvers.evolutionary.regal import weights


def graph_files(folder: Path, most: int | None = None) -> list[Path]:
    """The first files of a folder, and of folders in it, by their paths."""
    return sorted(path for path in folder.rglob("*") if path.is_file())[:most]


def graphs_hash(paths: Iterable[Path]) -> str:
    """SHA-256 of the hashes of graphs, in hexadecimal, as files of weights name their data."""
    return hashlib.sha256("".join(read(path).hash for path in paths).encode()).hexdigest()


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def trained(name: str, path: Path) -> Row:
    """A row of a record for a file of weights.

    It has the file's hash, and the hash of the graphs that trained it. Of its training it has the
    command, the settings, the steps so far, the steps of the best parameters, which are in the
    file, and all steps of the settings.
    """
    _, about = weights.read(path)
    return {
        "weights": name,
        "file": path.name,
        "sha256": file_hash(path),
        "data": about.data,
        "command": about.command,
        "settings": to_builtins(about.settings),
        "steps": about.steps,
        "kept": about.best_steps,
        "of": about.settings.steps,
    }
