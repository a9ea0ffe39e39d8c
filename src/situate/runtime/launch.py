"""Starts the process of a device: a fresh interpreter, which finds what this one finds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


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
    package = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, (package, *sys.path)))
    counts = ("OMP_NUM_THREADS", "MKL_NUM_THREADS") if threads is not None else ()
    printed = subprocess.DEVNULL if quiet else None
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        pass_fds=descriptors,
        env={
            **os.environ,
            **dict.fromkeys(counts, str(threads)),
            "PYTHONPATH": path,
            "SITUATE_DEVICE": name,
        },
        stdin=subprocess.DEVNULL,
        stdout=printed,
        stderr=printed,
        start_new_session=True,
    )
