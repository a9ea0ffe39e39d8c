"""A device named `apart:0` with memory of its own, which no CPU kernel reads: a stand-in for a GPU.

Importing this module creates it, in any process.
"""

from __future__ import annotations

from contextlib import nullcontext
from types import ModuleType

import torch

from tests.runtime.apart.compiler import library


def _module() -> ModuleType:
    """The functions that PyTorch asks of a device's module."""
    module = ModuleType("torch.apart")
    result = {
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
    vars(module).update(result)
    return module


torch.ops.load_library(library())
torch.utils.rename_privateuse1_backend("apart")
torch._register_device_module("apart", _module())
