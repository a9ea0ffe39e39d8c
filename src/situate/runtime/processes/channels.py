"""Channels that carry tensors between devices through memory that all of them map.

The sender writes the tensor and raises a flag. A receiver waits for the flag and reads the same
memory. A device with memory of its own copies to and from it.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from situate import _core
from situate.runtime.programs.kernels import is_dense

if TYPE_CHECKING:
    import torch


POLL_SECONDS = 0.1
"""Seconds between two checks whether the step was aborted."""

ABORT_FLAG = 0
"""The flag that aborts a step; channel k has flag k + 1."""


class Copies:
    """Copies between common memory and a device with memory of its own, concurrent with its
    computing.

    There is one stream for departures and one for arrivals. A device works asynchronously: a
    departure is complete when its stream says so, which a thread waits for; an arrival is awaited
    by the computing stream. A tensor may be freed at once, but not overwritten before
    `wait_until_left`. If a tensor and its slot have different layouts, PyTorch copies through
    unlocked memory and blocks.

    Args:
        slots: in common memory, which is page-locked for direct access by the device.
    """

    def __init__(self, device: torch.device, slots: Sequence[torch.Tensor]) -> None:
        import torch

        self._device = device
        self._streams: Any = torch.get_device_module(device)
        self._leaving, self._coming = (self._streams.Stream(device) for _ in range(2))
        self._departures: dict[int, Any] = {}
        self._sends: list[Future[None]] = []
        self._thread = ThreadPoolExecutor(1, initializer=partial(self._streams.set_device, device))
        if device.type == "cuda":
            weakref.finalize(self, _lock(device, slots))

    def write(
        self, slot: torch.Tensor, tensor: torch.Tensor, on_written: Callable[[], None]
    ) -> None:
        """Copy a tensor, once it is computed, into a slot; then call `on_written`."""
        # The copy starts when all that computes the tensor, which is queued before, has ended.
        self._leaving.wait_stream(self._computing)
        with self._streams.stream(self._leaving):
            alike = is_dense(slot) and tensor.stride() == slot.stride()
            slot.copy_(tensor, non_blocking=alike)
        # The allocator gives the memory to nobody else before this stream has read it.
        tensor.record_stream(self._leaving)
        # Blocking: the thread sleeps until the event, rather than keep a core awake.
        departure = self._leaving.record_event(self._streams.Event(blocking=True))
        self._departures[_address(tensor)] = departure
        self._sends.append(self._thread.submit(_when_done, departure, on_written))

    def read(self, slot: torch.Tensor) -> torch.Tensor:
        """The tensor in a slot, on the device."""
        with self._streams.stream(self._coming):
            tensor = slot.to(self._device, non_blocking=is_dense(slot))
        # Ops that read the tensor are queued behind its copy; the host goes on at once.
        self._computing.wait_stream(self._coming)
        tensor.record_stream(self._computing)
        return tensor

    def wait_until_left(self, tensor: torch.Tensor) -> None:
        """Let later computing wait for the departure of a tensor."""
        if (departure := self._departures.get(_address(tensor))) is not None:
            self._computing.wait_event(departure)

    def check(self) -> None:
        """Raise the error of a failed copy, if there is one."""
        for future in self._sends:
            if future.done():
                future.result()

    def settle(self) -> None:
        """Wait until all departures are complete.

        Raises:
            Exception: the error of a copy.
        """
        sends, self._sends = self._sends, []
        for future in sends:
            future.result()
        self._departures.clear()

    @property
    def _computing(self) -> Any:
        return self._streams.current_stream(self._device)


def _when_done(event: Any, call: Callable[[], None]) -> None:
    event.synchronize()
    call()


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _lock(device: torch.device, slots: Sequence[torch.Tensor]) -> Callable[[], None]:
    """Lock the pages of these tensors; the returned function unlocks them."""
    import torch

    memory = [slot.untyped_storage() for slot in slots if slot.numel()]
    if not memory:
        return lambda: None
    # All slots lie in one mapped block, so one range from the first to the last covers them.
    begin = min(m.data_ptr() for m in memory)
    nbytes = max(m.data_ptr() + m.nbytes() for m in memory) - begin
    cuda = torch.cuda.cudart()  # type: ignore[no-untyped-call]
    with torch.cuda.device(device):
        code = cuda.cudaHostRegister(begin, nbytes, 0)
    try:
        torch.cuda.check_error(code)
    except RuntimeError as error:
        raise MemoryError(f"{nbytes} bytes of the host cannot be locked: {error}") from error

    def unlock() -> None:
        with torch.cuda.device(device):
            cuda.cudaHostUnregister(begin)
        memory.clear()  # mapped until here

    return unlock


class Aborted(Exception):
    """The error that another device failed in this step."""


class Channels:
    """The channels of one device.

    Args:
        flags: shared by all devices.
        slots: by channel, the tensor in shared memory.
        device: receives the tensors.

    Attributes:
        step: number of the running step.
        waited: seconds of waiting in it.
    """

    def __init__(
        self, flags: _core.threads.Flags, slots: Sequence[torch.Tensor], device: torch.device
    ) -> None:
        self.step = 0
        self.waited = 0.0
        self._flags, self._slots = flags, slots
        self._copies = Copies(device, slots) if slots and device.type != "cpu" else None

    def sender(self, channel: int) -> Callable[[torch.Tensor], None]:
        """A function that writes a tensor into a channel."""
        slot, post, copies = self._slots[channel], self._flags.post, self._copies

        def send(tensor: torch.Tensor) -> None:
            if copies is not None:
                copies.write(slot, tensor, partial(post, channel + 1, self.step))
                return
            slot.copy_(tensor)
            post(channel + 1, self.step)

        return send

    def memory(self, channel: int) -> torch.Tensor:
        """The memory of a channel's tensor."""
        return self._slots[channel]

    def poster(self, channel: int) -> Callable[[], None]:
        """A function that announces the tensor in a channel's memory."""
        post = self._flags.post
        return lambda: post(channel + 1, self.step)

    def taker(self, channel: int) -> Callable[[], torch.Tensor]:
        """A function that waits for a channel's tensor and reads it."""
        slot, wait, copies = self._slots[channel], self._flags.wait, self._copies

        def take() -> torch.Tensor:
            began = time.perf_counter()
            while not wait(channel + 1, self.step, POLL_SECONDS):
                if wait(ABORT_FLAG, self.step, 0.0):
                    raise Aborted
                if copies is not None:
                    copies.check()  # the awaited tensor may depend on a failed copy
            self.waited += time.perf_counter() - began
            return slot if copies is None else copies.read(slot)

        return take

    def wait_until_left(self, tensor: torch.Tensor) -> None:
        """Let a tensor leave before it is overwritten."""
        if self._copies is not None:
            self._copies.wait_until_left(tensor)

    def settle(self) -> None:
        """Wait until all departures are complete."""
        if self._copies is not None:
            self._copies.settle()
