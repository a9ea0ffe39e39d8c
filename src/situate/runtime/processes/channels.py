"""Channels by which tensors get from one device to another: the sender writes into memory that all
of them map and raises a flag; whoever receives waits for the flag and reads there. A device with
memory of its own copies from and to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from situate import _core
from situate.runtime.processes.copies import Copies

if TYPE_CHECKING:
    import torch

POLL_SECONDS = 0.1
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
        self, flags: _core.threads.Flags, slots: Sequence[torch.Tensor], device: torch.device
    ) -> None:
        self.step = 0
        self.waited = 0.0
        self._flags, self._slots = flags, slots
        self._copies = Copies(device, slots) if slots and device.type != "cpu" else None

    def sender(self, channel: int) -> Callable[[torch.Tensor], None]:
        """The function that writes a tensor into a channel."""
        slot, post, copies = self._slots[channel], self._flags.post, self._copies

        def send(tensor: torch.Tensor) -> None:
            if copies is not None:
                copies.write(slot, tensor, partial(post, channel + 1, self.step))
                return
            slot.copy_(tensor)
            post(channel + 1, self.step)

        return send

    def memory(self, channel: int) -> torch.Tensor:
        """The memory that a channel's tensor is written to."""
        return self._slots[channel]

    def poster(self, channel: int) -> Callable[[], None]:
        """The function that says that the tensor of a channel is written."""
        post = self._flags.post
        return lambda: post(channel + 1, self.step)

    def taker(self, channel: int) -> Callable[[], torch.Tensor]:
        """The function that reads a tensor from a channel once it is there."""
        slot, wait, copies = self._slots[channel], self._flags.wait, self._copies

        def take() -> torch.Tensor:
            began = time.perf_counter()
            while not wait(channel + 1, self.step, POLL_SECONDS):
                if wait(ABORT, self.step, 0.0):
                    raise Aborted
                if copies is not None:
                    copies.check()  # what this waits for may wait for what was not sent
            self.waited += time.perf_counter() - began
            return slot if copies is None else copies.read(slot)

        return take

    def wait_until_left(self, tensor: torch.Tensor) -> None:
        """Let a tensor leave before it is overwritten."""
        if self._copies is not None:
            self._copies.wait_until_left(tensor)

    def settle(self) -> None:
        """Wait until all that was sent is there."""
        if self._copies is not None:
            self._copies.settle()
