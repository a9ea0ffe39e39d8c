"""CUDA devices: ops one by one between events, and copies from and to other devices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import median_low

import msgspec

from situate.data.cluster import Device
from situate.data.costs import MeasuredDevice, MeasuredLink
from situate.profiling.op_costs import efficiencies
from situate.profiling.plain_step import REPETITIONS, TRANSFER_SIZES, fit_link
from situate.profiling.replay import Call, replay
from situate.runtime.device import device_clock
from situate.runtime.hardware import RealDevice
from situate.runtime.programs.program import Program

COPY_REPETITIONS = 7
"""Copies of a tensor of each size, after a warm-up."""


def measure_device(program: Program, device: Device, real: RealDevice) -> MeasuredDevice:
    """Measure the ops of a program on a CUDA device, one by one.

    An op takes the time between two events on its stream. So launches that delay the device count,
    and others do not.
    """
    import torch

    here = torch.device(real.torch)
    with torch.cuda.device(here):
        seconds = replay(program, here, _between_events)
        ones = median_low(_between_events(lambda: torch.ones(1, device=here), REPETITIONS))
    costs = MeasuredDevice(
        name=device.name,
        kind=device.kind,
        model=device.model,
        flops=device.flops,
        bandwidth=device.bandwidth if math.isfinite(device.bandwidth) else None,
        launch=ones,
        seconds=seconds,
    )
    return msgspec.structs.replace(costs, efficiency=efficiencies(program.graph.ops, costs))


def _between_events(call: Call, count: int) -> list[float]:
    """A stopwatch on the current CUDA stream."""
    import torch

    event: Callable[..., torch.cuda.Event] = torch.cuda.Event
    pairs = [(event(enable_timing=True), event(enable_timing=True)) for _ in range(count)]
    for start, end in pairs:
        start.record()
        call()
        end.record()
    # Event times exist only once the stream has passed the events.
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1e3 for start, end in pairs]


def measure_links(devices: Sequence[RealDevice]) -> Iterator[MeasuredLink]:
    """The measured links of all ordered pairs of devices that include a CUDA device."""
    for source in devices:
        for target in devices:
            if source.torch != target.torch and "cuda" in source.torch + target.torch:
                seconds = [
                    _copy_seconds(source.torch, target.torch, size) for size in TRANSFER_SIZES
                ]
                yield MeasuredLink(source.name, target.name, *fit_link(seconds))


def _copy_seconds(source: str, target: str, size: int) -> float:
    """Seconds of a copy along a placed step's way, through page-locked memory of the host, but
    without the flag."""
    import torch

    tensor = torch.ones(size, dtype=torch.uint8, device=source)
    slot = torch.empty(size, dtype=torch.uint8, pin_memory=torch.cuda.is_available())
    source_clock, target_clock = (
        device_clock("perf_counter", torch.device(device)) for device in (source, target)
    )

    def seconds() -> float:
        start = target_clock()
        slot.copy_(tensor, non_blocking=True)
        # The clock of a GPU waits for its queue: the tensor must be in host memory before it goes
        # on.
        source_clock()
        slot.to(target, non_blocking=True)
        return target_clock() - start

    # The first copy allocates and pins memory.
    return median_low([seconds() for _ in range(COPY_REPETITIONS + 1)][1:])
