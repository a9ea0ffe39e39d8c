"""A device named `apart:0` with memory of its own, which no kernel for CPUs reads: what a GPU is to
a placed step, without one. Importing this makes it, in any process."""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

import torch

from tests.runtime.apart_compiler import COMPILER

SOURCE = Path(__file__).with_name("apart_device.cpp")


def _built() -> Path:
    """The library, compiled once for every version of PyTorch and of the source."""
    from torch.utils.cpp_extension import include_paths, library_paths

    version = f"{torch.__version__}-{SOURCE.stat().st_mtime_ns}"
    library = Path(tempfile.gettempdir()) / f"situate-apart-{os.getuid()}-{version}.so"
    if not library.exists():
        assert COMPILER is not None
        beside = library.with_suffix(f".{os.getpid()}")
        flags = ["-std=c++20", "-O0", "-shared", "-fPIC", *(f"-I{p}" for p in include_paths())]
        libraries = [*(f"-L{p}" for p in library_paths()), "-lc10", "-ltorch_cpu"]
        command = [COMPILER, *flags, str(SOURCE), *libraries, "-o", str(beside)]
        subprocess.run(command, check=True, capture_output=True)
        beside.rename(library)
    return library


def _module() -> ModuleType:
    """What PyTorch asks of a device's module."""
    module = ModuleType("torch.apart")
    said = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "device": nullcontext,
        "set_device": lambda device: None,
        "synchronize": lambda device=None: torch.accelerator.synchronize(),
        "current_stream": lambda device=None: torch.accelerator.current_stream(device),
        "stream": lambda stream: stream,
        "Stream": torch.Stream,
        "Event": lambda blocking=False: torch.Event("apart", blocking=blocking),
        "manual_seed_all": lambda seed: None,
        "_is_in_bad_fork": lambda: False,
        "_lazy_init": lambda: None,
    }
    vars(module).update(said)
    return module


torch.ops.load_library(_built())
torch.utils.rename_privateuse1_backend("apart")
torch._register_device_module("apart", _module())
