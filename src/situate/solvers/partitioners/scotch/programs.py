"""Scotch's own program: a graph and a machine as files in, a static mapping out."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from situate.errors import SituateError

PROGRAMS = ("scotch_gmap", "gmap")
"""Names of the static mapper: Debian's, whose `gmap` is another program, and Scotch's own."""

LONGEST = 600.0
"""Default limit on the wall seconds of a mapping."""


def find_mapper() -> str:
    """Path of the static mapper.

    Raises:
        SituateError: it is not on the PATH; the message says how to install it.
    """
    for name in PROGRAMS:
        if path := shutil.which(name):
            return os.path.abspath(path)
    raise SituateError(
        f"this needs Scotch's program {PROGRAMS[0]!r} or {PROGRAMS[1]!r}, and neither is on the "
        "PATH: apt-get install scotch"
    )


def static_mapping(
    source: str, target: str, vertices: int, processors: int, longest: float = LONGEST
) -> NDArray[np.int64]:
    """The processor (vertices,) that Scotch maps each vertex of a graph to.

    Scotch's random seed is fixed and it uses one thread, so equal input gives equal output.

    Args:
        source: the graph, as the text of a `.grf` file.
        target: the machine, as the text of a `.tgt` file.
        vertices, processors: numbers in the graph and in the machine.
        longest: limit on the wall seconds.

    Raises:
        SituateError: the program is missing, fails, takes too long or writes no valid mapping.
    """
    mapper = find_mapper()
    try:
        with TemporaryDirectory(prefix="situate-scotch-") as folder:
            Path(folder, "graph.grf").write_text(source, "ascii")
            Path(folder, "machine.tgt").write_text(target, "ascii")
            message = _call(mapper, folder, longest)
            mapping = Path(folder, "graph.map")
            text = mapping.read_text("ascii", "replace") if mapping.exists() else ""
    except OSError as error:
        raise SituateError(f"{mapper} cannot be run: {error}") from error
    return _checked(text, vertices, processors, f"{mapper}{message}")


def _call(mapper: str, folder: str, longest: float) -> str:
    """Run the mapper and return the first line of its errors; its exit status is always zero."""
    command = [mapper, "-Cd", "graph.grf", "machine.tgt", "graph.map"]
    environment = os.environ | {"SCOTCH_PTHREAD_NUMBER": "1"}
    try:
        process = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=longest,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SituateError(f"{mapper} was stopped after {longest:g} s") from error
    lines = process.stderr.decode("ascii", "replace").strip().splitlines()
    return f" says {lines[0][:200]!r} and" if lines else ""


def _checked(text: str, vertices: int, processors: int, mapper: str) -> NDArray[np.int64]:
    """(vertices,) processors of a `.map` file: a count, then a vertex and processor per line."""
    try:
        count, *rest = map(int, text.split())
        pairs = np.array(rest, np.int64).reshape(-1, 2)
    except (ValueError, OverflowError):
        raise SituateError(f"{mapper} gave no mapping: Scotch 7 or newer is needed") from None
    vertex, processor = pairs[np.argsort(pairs[:, 0], kind="stable")].T
    if count != vertices or not np.array_equal(vertex, np.arange(vertices)):
        raise SituateError(f"{mapper} did not map each of {vertices} vertices once")
    if ((processor < 0) | (processor >= processors)).any():
        raise SituateError(f"{mapper} mapped a vertex to none of {processors} processors")
    return np.asarray(processor)
