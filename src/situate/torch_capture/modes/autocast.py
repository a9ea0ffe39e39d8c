"""Autocast of a device that a program names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from situate.torch_capture.patches.named_devices import HERE, NamedDevices
from situate.torch_capture.patches.patched import replaced


@contextlib.contextmanager
def autocast_of_the_cpu(named: NamedDevices) -> Iterator[None]:
    """Autocast of another device is the CPU's within, with the dtype that it names or has by
    default. PyTorch casts nothing on the CPU under autocast of another device, and turns autocast
    of a device that it does not have off, so the casts of the step would be missing."""
    import torch

    kind = torch.autocast
    make, enter, leave = kind.__init__, kind.__enter__, kind.__exit__
    enabled, dtype_of = torch.is_autocast_enabled, torch.get_autocast_dtype

    # By open region of another device, whether it is enabled; the innermost one is the last.
    regions: list[bool] = []

    def is_enabled(device: str = "cuda") -> bool:
        if device in HERE:
            return enabled(device)
        return bool(regions) and regions[-1] and enabled("cpu")

    def dtype(device: str) -> torch.dtype:
        return dtype_of("cpu" if device not in HERE and is_enabled(device) else device)

    def made(self: Any, device_type: str, dtype: Any = None, *given: Any, **options: Any) -> None:
        elsewhere = isinstance(device_type, str) and device_type not in HERE
        if elsewhere and dtype is None:
            dtype = torch.get_autocast_dtype(device_type)
        make(self, "cpu" if elsewhere else device_type, dtype, *given, **options)
        # The program still reads the device that it named.
        self.device = device_type

    def entered(self: Any) -> Any:
        if self.device not in HERE and self._enabled:
            named.add(self.device)
        if self.device not in HERE:
            regions.append(self._enabled)
        with _on_cpu(self):
            return enter(self)  # type: ignore[no-untyped-call]

    def left(self: Any, *raised: Any) -> Any:
        if self.device not in HERE and regions:
            regions.pop()
        with _on_cpu(self):
            return leave(self, *raised)

    with (
        replaced(kind, "__init__", made),
        replaced(kind, "__enter__", entered),
        replaced(kind, "__exit__", left),
        replaced(torch, "is_autocast_enabled", is_enabled),
        replaced(torch, "get_autocast_dtype", dtype),
    ):
        yield


@contextlib.contextmanager
def _on_cpu(autocast: Any) -> Iterator[None]:
    """It is the CPU's within, whatever device it names."""
    device = autocast.device
    autocast.device = device if device in HERE else "cpu"
    try:
        yield
    finally:
        autocast.device = device
