"""Stage: the machine, its GPU, and the versions of the programs that measure it."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import msgspec
import torch

from benchmarks.gpu import hardware
from benchmarks.gpu.process import Context
from situate.bench import provenance
from situate.host.discover import to_toml

PROGRAMS = {
    "driver": ("nvidia-smi", "--query-gpu=name,driver_version,pcie.link.gen.max,pcie.link.width.max"
                             ",clocks.max.sm,clocks.max.mem,memory.total,power.limit",
               "--format=csv,noheader"),
    "nvcc": ("nvcc", "--version"),
    "cmake": ("cmake", "--version"),
    "compiler": ("c++", "--version"),
}  # fmt: skip

PROPERTIES = (
    "name", "major", "minor", "total_memory", "multi_processor_count", "L2_cache_size",
    "shared_memory_per_multiprocessor", "regs_per_multiprocessor", "clock_rate",
    "memory_clock_rate", "memory_bus_width",
)  # fmt: skip


def measure(context: Context) -> None:
    """The processor, programs and packages; then the GPU, as CUDA and as situate describe it."""
    origin = provenance.provenance()
    context.note(
        program=origin.program,
        host=msgspec.to_builtins(origin.machine),
        versions={**origin.versions, "cuda": torch.version.cuda},
        programs={name: _output(command) for name, command in PROGRAMS.items()},
    )
    context.take_device()
    context.note(gpu=_properties(context), settings=_settings())
    context.note(cluster=to_toml(hardware.machine(context)))


def _output(command: tuple[str, ...]) -> str:
    """The last lines that a program prints; none where it is not there."""
    if shutil.which(command[0]) is None:
        return ""
    run = subprocess.run(command, capture_output=True, text=True, timeout=20)
    return run.stdout.strip()[-300:]


def _properties(context: Context) -> dict[str, Any]:
    if not context.on_gpu:
        return {}
    properties = torch.cuda.get_device_properties(0)
    figures = {name: getattr(properties, name, None) for name in PROPERTIES}
    free, total = torch.cuda.mem_get_info()
    return {**figures, "free_bytes": free, "total_bytes": total, "count": torch.cuda.device_count()}


def _settings() -> dict[str, Any]:
    """The settings of PyTorch that decide the precision of a float32 product."""
    return {
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "cudnn.allow_tf32": torch.backends.cudnn.allow_tf32,
        "cudnn.benchmark": torch.backends.cudnn.benchmark,
        "threads": torch.get_num_threads(),
    }
