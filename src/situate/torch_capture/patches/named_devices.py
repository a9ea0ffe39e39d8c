"""Names of devices in a program whose ops run where a plan puts them."""

from __future__ import annotations

from typing import Any

HERE = ("cpu", "meta")
"""Kinds of devices that capture leaves as they are."""


class NamedDevices:
    """The devices that a program has named, except the CPU and `meta`."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def __bool__(self) -> bool:
        return bool(self._names)

    def add(self, name: object) -> None:
        """Record a device, which may have been recorded before."""
        self._names[str(name)] = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """A line about the devices; empty if there are none."""
        if not self._names:
            return ()
        names = ", ".join(sorted(self._names))
        return (f"the model or step names {names}: taken as wherever the plan puts an op",)

    def here(self, device: Any) -> Any:
        """The CPU in place of another device, which is recorded. Other values are returned
        unchanged."""
        if is_here(device):
            return device
        self.add(f"device {device}" if isinstance(device, int) else device)
        return "cpu"


def is_here(device: Any) -> bool:
    """True for the CPU, `meta` and any value that names no device."""
    import torch

    if isinstance(device, int):
        # PyTorch takes a number as the index of an accelerator. Booleans are integers, too, but no
        # index.
        return isinstance(device, bool)
    if isinstance(device, torch.device):
        return device.type in HERE
    return not isinstance(device, str) or torch.device(device).type in HERE
