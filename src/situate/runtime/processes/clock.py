"""The clock that a device's work is timed by."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

Clock = Callable[[], float]


def clock(name: str, device: torch.device) -> Clock:
    """The clock of this name in module `time`. A GPU works behind what it is told, so there it is
    read when all of that is done."""
    import torch

    read: Clock = getattr(time, name)
    if device.type == "cpu":
        return read

    def read_when_done() -> float:
        torch.get_device_module(device).synchronize(device)
        return read()

    return read_when_done
