"""Starts the process of a device: a fresh interpreter, which finds what this one finds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

LEAVE = "\nimport os; os._exit(0)"
"""Whoever has nothing more to do is gone at once: Python would walk all of PyTorch before."""


def launched(
    code: str,
    arguments: Sequence[str],
    descriptors: Sequence[int],
    *,
    threads: int | None,
    name: str,
    quiet: bool = False,
) -> subprocess.Popen[bytes]:
    """A process of its own session, so that Ctrl-C is for the caller, who ends it.

    Args:
        code: what it executes, with these arguments behind it.
        descriptors: that it keeps.
        threads: that its kernels may use from the start; None for as many as there are cores.
        name: of the device, which it finds in SITUATE_DEVICE.
        quiet: leave out what it prints.
    """
    counts = ("OMP_NUM_THREADS", "MKL_NUM_THREADS") if threads is not None else ()
    printed = subprocess.DEVNULL if quiet else None
    return subprocess.Popen(
        [sys.executable, "-P", "-c", code + LEAVE, *arguments],
        pass_fds=descriptors,
        env={
            **os.environ,
            **dict.fromkeys(counts, str(threads)),
            "PYTHONPATH": os.pathsep.join(_path()),
            "SITUATE_DEVICE": name,
        },
        stdin=subprocess.DEVNULL,
        stdout=printed,
        stderr=printed,
        start_new_session=True,
    )


def _path() -> list[str]:
    """Where this process looks for modules, and first for this package if it was found elsewhere.
    Empty means the current directory, which is only looked through where this process does so."""
    package = str(Path(__file__).parents[2])
    found = [entry or os.getcwd() for entry in sys.path]
    return found if package in found else [package, *found]
