"""How tensors get from one device to another: the sender writes into memory that all of them map
and raises a flag; whoever receives waits for the flag and reads there."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from situate import _core

if TYPE_CHECKING:
    import torch

LOOK = 0.1
"""Seconds between two looks whether the step was given up."""

ABORT = 0
"""The flag that gives a step up; channel k has flag k + 1."""


class Aborted(Exception):
    """Another device failed in this step."""


class Channels:
    """The channels of one device.

    Args:
        flags: shared by all devices.
        slots: by channel, the tensor in shared memory.
        device: where received tensors are wanted.

    Attributes:
        step: number of the step that runs.
        waited: seconds this device has waited in it.
    """

    def __init__(
        self, flags: _core.Flags, slots: Sequence[torch.Tensor], device: torch.device
    ) -> None:
        self.step = 0
        self.waited = 0.0
        self._flags, self._slots, self._device = flags, slots, device

    def sender(self, channel: int) -> Callable[[torch.Tensor], None]:
        """What writes a tensor into a channel."""
        slot, post = self._slots[channel], self._flags.post

        def send(tensor: torch.Tensor) -> None:
            slot.copy_(tensor)
            post(channel + 1, self.step)

        return send

    def memory(self, channel: int) -> torch.Tensor:
        """Where a channel's tensor is written."""
        return self._slots[channel]

    def poster(self, channel: int) -> Callable[[], None]:
        """What says that the tensor of a channel is written."""
        post = self._flags.post
        return lambda: post(channel + 1, self.step)

    def taker(self, channel: int) -> Callable[[], torch.Tensor]:
        """What reads a tensor from a channel once it is there."""
        slot, wait = self._slots[channel], self._flags.wait

        def take() -> torch.Tensor:
            began = time.perf_counter()
            while not wait(channel + 1, self.step, LOOK):
                if wait(ABORT, self.step, 0.0):
                    raise Aborted
            self.waited += time.perf_counter() - began
            return slot if slot.device == self._device else slot.to(self._device)

        return take
