"""The program and the machine that a measurement comes from."""

from __future__ import annotations

import hashlib
import platform
import re
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec
import numpy as np

from situate import _core
from situate.host.machine import cpu_name, usable_cpus, usable_memory
from situate.version import VERSION

PACKAGE = Path(__file__).parents[1]


class Machine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A machine, as far as this process may use it."""

    cpu: str
    cores: int
    memory_bytes: int | None
    os: str


class Provenance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The origin of a measurement.

    Attributes:
        program: the first digits of a SHA-256 of situate's own files: equal programs give equal
            results.
        commit: of the checkout that the program is part of, `+dirty` behind it where the program's
            files differ from it; empty where there is none.
        versions: of Python and of packages that results depend on, and the compiler of the core.
    """

    program: str
    version: str
    commit: str
    machine: Machine
    versions: dict[str, str | None]


@cache
def provenance() -> Provenance:
    """The origin of this process's measurements."""
    return Provenance(_program(), VERSION, _own_commit(), machine(), versions())


def now() -> str:
    """The time, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def commit(folder: Path, paths: Sequence[str] = (".",)) -> str:
    """The commit of a checkout, with `+dirty` where files under the paths differ from it.

    Args:
        folder: in the checkout.
        paths: as git takes them, from the folder on.

    Raises:
        OSError, subprocess.CalledProcessError: git is not there, or the folder is no checkout.
    """
    changed = _git(folder, "status", "--porcelain", "--", *paths)
    return _git(folder, "rev-parse", "HEAD") + ("+dirty" if changed else "")


def machine() -> Machine:
    """Processor, logical cores and bytes of memory that this process may use, operating system."""
    return Machine(cpu_name(), usable_cpus(), usable_memory(), platform.platform())


def versions() -> dict[str, str | None]:
    """Versions by name; None for packages that are not installed."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        **{package: _installed(package) for package in ("torch", "transformers", "ortools")},
        "compiler": _compiler(),
    }


def _own_commit() -> str:
    """The commit of the checkout that holds this package, not of one that it was installed into."""
    try:
        _git(PACKAGE, "ls-files", "--error-unmatch", "__init__.py")
        # Benchmarks write the table of best values themselves.
        return commit(PACKAGE, (":/src", ":/cpp", ":!*/best_known.json"))
    except (OSError, subprocess.CalledProcessError):
        return ""


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _program() -> str:
    digest = hashlib.sha256(Path(_core.__file__).read_bytes())  # which may lie elsewhere
    for file in sorted(PACKAGE.rglob("*.py")):
        digest.update(str(file.relative_to(PACKAGE)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _compiler() -> str | None:
    """The compiler's own words in the core's library, which it leaves there."""
    words = re.search(
        rb"(GCC: \([^)]*\) [\d.]+|clang version [\d.]+)", Path(_core.__file__).read_bytes()
    )
    return words[1].decode() if words else None
