"""Compiles the device of `tests.runtime.apart`, once for each version of it and of PyTorch."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

COMPILER = os.environ.get("CXX") or shutil.which("c++")
"""None where there is none."""

SOURCE = Path(__file__).with_name("device.cpp")


def library() -> Path:
    """The device; who comes while another process compiles it waits for that."""
    import torch

    version = f"{torch.__version__}-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]}"
    path = Path(tempfile.gettempdir()) / f"situate-apart-{os.getuid()}-{version}.so"
    if not path.exists():
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                _compile(path)
    return path


def _compile(target: Path) -> None:
    from torch.utils.cpp_extension import include_paths, library_paths

    assert COMPILER is not None
    beside = target.with_suffix(f".{os.getpid()}")
    flags = ["-std=c++20", "-O0", "-shared", "-fPIC", *(f"-I{p}" for p in include_paths())]
    libraries = [*(f"-L{p}" for p in library_paths()), "-lc10", "-ltorch_cpu"]
    command = [COMPILER, *flags, str(SOURCE), *libraries, "-o", str(beside)]
    subprocess.run(command, check=True, capture_output=True)
    beside.rename(target)
