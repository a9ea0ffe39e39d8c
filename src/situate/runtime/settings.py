"""PyTorch's settings that kernels read, which workers take over from the caller."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from functools import reduce
from typing import Any

Settings = dict[str, Any]

FUNCTIONS = ("default_dtype", "deterministic_debug_mode", "float32_matmul_precision")
"""Settings with functions `torch.get_...` and `torch.set_...`."""

FLAGS = (
    "cudnn.allow_tf32",
    "cuda.matmul.fp32_precision",
    "cuda.matmul.allow_fp16_accumulation",
    "cuda.matmul.allow_fp16_reduced_precision_reduction",
    "cuda.matmul.allow_bf16_reduced_precision_reduction",
    "cudnn.enabled",
    "cudnn.benchmark",
    "cudnn.deterministic",
    "cudnn.conv.fp32_precision",
    "cudnn.rnn.fp32_precision",
    "mkldnn.enabled",
    "mkldnn.deterministic",
    "mkldnn.matmul.fp32_precision",
    "mkldnn.conv.fp32_precision",
    "mkldnn.rnn.fp32_precision",
)
"""Flags of `torch.backends`. Of two generations of a flag the older comes first, as it sets the
newer too."""


def current_settings() -> Settings:
    """The settings of this process, by name, in the order of setting them."""
    values = {name: _current(name) for name in (*FUNCTIONS, *FLAGS)}
    return {name: value for name, value in values.items() if value is not None}


def apply_settings(target: Settings) -> None:
    """Set this process to these settings, where they differ."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the caller has seen PyTorch's warnings already
        for name, value in target.items():
            if value == _current(name):
                continue
            if name in FUNCTIONS:
                getattr(torch, f"set_{name}")(value)
            else:
                setattr(*_flag(name), value)


def _current(name: str) -> Any:
    """The current value; None if PyTorch refuses to tell, as for the older flag once the newer is
    set."""
    import torch

    try:
        return getattr(torch, f"get_{name}")() if name in FUNCTIONS else getattr(*_flag(name))
    except RuntimeError:
        return None


def _flag(name: str) -> tuple[Any, str]:
    """The object with a flag, and the flag's name in it."""
    import torch

    *owners, flag = name.split(".")
    return reduce(getattr, owners, torch.backends), flag


@contextlib.contextmanager
def use_threads(count: int | None) -> Iterator[None]:
    """A block in which kernels use `count` threads; None leaves the number unchanged."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
