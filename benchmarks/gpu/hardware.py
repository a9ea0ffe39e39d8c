"""The device that is measured, as situate describes it, and clocks for it.

Where there is no GPU, the CPU stands in for one: the same stages run, with other figures.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable

import msgspec
import torch

import situate
from benchmarks.gpu.process import Context
from situate.data.cluster import Cluster, Device
from situate.host.discover import discover
from situate.runtime.hardware import RealDevice

PRESET = "h100-8"
"""Describes the GPU where nvidia-ml-py does not."""

GPU = "gpu0"

Call = Callable[[], object]


def machine(context: Context) -> Cluster:
    """This machine: one GPU and the CPU; in a rehearsal two CPU devices of one thread each."""
    if not context.on_gpu:
        two = discover(2)
        devices = tuple(msgspec.structs.replace(device, threads=1) for device in two.devices)
        return Cluster("rehearsal", devices, two.links)
    everything = discover()
    gpus = [device for device in everything.devices if device.kind == "gpu"]
    if not gpus:
        return _as_preset(everything)
    names = {GPU, *(device.name for device in everything.devices if device.kind == "cpu")}
    devices = tuple(device for device in everything.devices if device.name in names)
    links = tuple(link for link in everything.links if {link.source, link.target} <= names)
    return Cluster("machine", devices, links)


def _as_preset(cpus: Cluster) -> Cluster:
    preset = Cluster.preset(PRESET)
    gpu = msgspec.structs.replace(preset.devices[0], name=GPU)
    links = tuple(link for link in preset.links if "cpu" in (link.source, link.target))
    return Cluster("machine", (gpu, *cpus.devices), links)


def target(context: Context) -> tuple[Device, RealDevice]:
    """The device of a cluster that is measured, and the real one, which works on copies."""
    described = machine(context).devices[0]
    if not context.on_gpu:
        described = msgspec.structs.replace(described, name=GPU, kind="gpu", threads=None)
    return described, RealDevice(GPU, context.device, 1, mirrored=True)


def alone(device: Device) -> Cluster:
    """A cluster of one device."""
    return situate.Cluster("alone", (device,))


def finish(context: Context) -> None:
    """Wait until the device has done all that it was told."""
    if context.on_gpu:
        torch.cuda.synchronize()


def wall_seconds(context: Context, call: Call, calls: int = 1) -> float:
    """Seconds of so many calls in a row on the wall, until the device has ended."""
    finish(context)
    began = time.perf_counter()
    for _ in range(calls):
        call()
    finish(context)
    return time.perf_counter() - began


def device_seconds(context: Context, call: Call, rounds: int = 5, budget: float = 0.3) -> float:
    """Seconds of a call in the median of rounds, each of so many calls in a row that a launch does
    not count, between two events of the device."""
    call()
    one = wall_seconds(context, call)
    calls = max(1, min(50, int(budget / rounds / max(one, 1e-7))))
    return statistics.median(between_events(context, call, calls) for _ in range(rounds)) / calls


def between_events(context: Context, call: Call, calls: int = 1) -> float:
    """Seconds of so many calls in a row, between two events of the device."""
    if not context.on_gpu:
        return wall_seconds(context, call, calls)
    make: Callable[..., torch.cuda.Event] = torch.cuda.Event
    began, ended = (make(enable_timing=True) for _ in range(2))
    began.record()
    for _ in range(calls):
        call()
    ended.record()
    torch.cuda.synchronize()
    return float(began.elapsed_time(ended)) / 1e3


def peak_memory(context: Context) -> dict[str, int]:
    """The most bytes that PyTorch allocated and reserved since `forget_peak`; none of a CPU."""
    if not context.on_gpu:
        return {}
    return {
        "allocated_bytes": torch.cuda.max_memory_allocated(),
        "reserved_bytes": torch.cuda.max_memory_reserved(),
    }


def forget_peak(context: Context) -> None:
    """Begin to look at memory anew, with nothing cached."""
    gc.collect()
    if context.on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
