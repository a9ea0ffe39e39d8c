"""Stage: install missing packages from the wheels, and build situate's core.

All of it goes into one folder, which is the first on the path of the stages that follow; the
machine's own Python stays as it is.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

from benchmarks.gpu.process import Context
from benchmarks.gpu.report import ROOT

Version = tuple[int, ...]


def measure(context: Context) -> None:
    """Install and build; the seconds of each."""
    wheels = sorted(context.wheels.glob("*.whl"))
    missing = [wheel for wheel in wheels if is_needed(wheel, minimums())]
    context.note(missing=[wheel.name for wheel in missing])
    context.site.mkdir(parents=True, exist_ok=True)
    if missing:
        context.note(install_seconds=_seconds(_pip(context.site, missing)))
    context.note(build_seconds=_seconds(_pip(context.site, [ROOT], "--no-build-isolation")))
    test = "import situate; from situate import _core; print(situate.__file__)"
    _run([sys.executable, "-c", test], context.site)


def environment(site: Path) -> dict[str, str]:
    """Variables of processes that import the packages of the folder; the core is compiled on all
    processors."""
    path = [str(site.absolute()), str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    cores = str(os.cpu_count() or 1)
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "CMAKE_BUILD_PARALLEL_LEVEL": os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", cores),
    }


def is_needed(wheel: Path, least: dict[str, Version]) -> bool:
    """True if the wheel's package is not installed, or is older than situate needs."""
    name = project_name(wheel.name.split("-")[0])
    try:
        installed = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return True
    return version_of(installed) < least.get(name, ())


def minimums() -> dict[str, Version]:
    """The least versions that pyproject.toml states, by package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    lines = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *(line for name in ("torch", "discover", "dev") for line in extras[name]),
    ]
    pairs = (re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", line) for line in lines)
    return {pair[1].lower(): version_of(pair[2]) for pair in pairs if pair}


def project_name(text: str) -> str:
    """The name that a requirement or a file's name begins with, as indexes spell it."""
    word = re.match(r"[\w.-]+", text)
    return re.sub(r"[-_.]+", "-", word[0] if word else "").strip("-").lower()


def version_of(text: str) -> Version:
    """The numbers that a version begins with."""
    numbers = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()


def _pip(site: Path, sources: Sequence[Path], *options: str) -> list[str]:
    head = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    own = ["--no-index", "--no-deps", "--no-compile", "--upgrade", "--target", str(site)]
    return [*head, *own, *options, *map(str, sources)]


def _seconds(command: list[str]) -> float:
    began = time.monotonic()
    _run(command, Path(command[command.index("--target") + 1]))
    return time.monotonic() - began


def _run(command: list[str], site: Path) -> None:
    """Run a command; its output is its error where it fails."""
    run = subprocess.run(command, env=environment(site), capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"{' '.join(command[:6])} ...: {run.stdout}{run.stderr}")
