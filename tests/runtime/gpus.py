"""GPUs as parameters of tests, skipped where this machine has too few. The ids of such tests hold
`cuda`, by which `-k cuda` chooses them."""

from __future__ import annotations

import pytest
import torch

from situate.runtime.hardware import RealDevice

GPUS = [RealDevice(f"gpu{k}", f"cuda:{k}", 1, mirrored=True) for k in range(2)]


def needs_gpus(count: int) -> pytest.MarkDecorator:
    """Skips a test where there are fewer."""
    few = torch.cuda.device_count() < count
    return pytest.mark.skipif(few, reason=f"needs {count} CUDA device{'s' * (count > 1)}")


KINDS = ["cpu", pytest.param("cuda", marks=needs_gpus(1))]
"""Kinds of devices, as words of PyTorch."""
