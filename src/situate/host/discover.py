"""A cluster file for this machine: its CPU, and the GPUs that CUDA shows, as nvidia-ml-py describes
them."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from situate.data.cluster import MOST_DEVICES, Cluster, Device, Link
from situate.errors import ClusterError
from situate.files.strict_json import plain
from situate.host.cuda import Gpu, visible_gpus
from situate.host.machine import cpu_name, usable_cpus, usable_memory

LAUNCH = {"cpu": 4e-6, "gpu": 6e-6}
"""Seconds to launch an op from eager PyTorch; docs/clusters.md has the sources."""

HANDOVER_LATENCY = 60e-6
"""Seconds until another process sees a tensor in shared memory: a message through a pipe took 48 to
82 us on a 2-core virtual machine."""

FRAMEWORK_BYTES = 1 << 30
"""GPU memory that a CUDA context and its libraries take."""

COPY_LATENCY = 10e-6
"""Seconds a stream-ordered copy takes beside its bytes."""

PCIE_LANE = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
"""Nominal bytes/s of one lane and direction, by PCIe generation."""

PCIE_REACHED = 0.8
"""Assumed fraction of the nominal PCIe rate that copies reach."""

CUDA_LANES = {
    (3, 5): (192, 64), (3, 7): (192, 64), (5, 0): (128, 4), (5, 2): (128, 4), (6, 0): (64, 32),
    (6, 1): (128, 4), (7, 0): (64, 32), (7, 5): (64, 2), (8, 0): (64, 32), (8, 6): (128, 2),
    (8, 9): (128, 2), (9, 0): (128, 64), (10, 0): (128, 64), (12, 0): (128, 2),
}  # fmt: skip
"""float32 and float64 units of a multiprocessor, by compute capability (CUDA C++ Programming
Guide, "Arithmetic Instructions")."""

TENSOR_RATE = {
    (7, 0): 8, (7, 5): 4, (8, 0): 16, (8, 6): 2, (8, 9): 2, (9, 0): 15, (10, 0): 30, (12, 0): 2,
}  # fmt: skip
"""float16 rate of the tensor cores (accumulating in float32) over the float32 rate of the CUDA
cores, from the datasheets of V100, RTX 2080 Ti, A100, RTX 3090, RTX 4090, H100, B200, RTX 5090."""


def discover(cpus: int | None = None) -> Cluster:
    """This machine as a cluster: one device for every CUDA GPU, then the CPU.

    Args:
        cpus: describe the CPU as so many devices, `cpu:0` and on, that share its threads, memory
            and rates evenly.

    The CPU's rates are measured for about a second; a GPU's follow from its clocks, units and
    bus as the driver reports them, and its link from PCIe's generation and width. GPU number i is
    the `cuda:i` of this process. Without nvidia-ml-py or a driver there are no GPUs.

    Raises:
        ClusterError: the driver is there and fails to describe a GPU, or `cpus` is not positive or
            too many.
    """
    if cpus is not None and not 1 <= cpus <= MOST_DEVICES:
        raise ClusterError(f"cpus: must be between 1 and {MOST_DEVICES}, got {cpus}")
    gpus = _cuda()
    cpu = _cpu()
    hosts = [cpu] if cpus is None else _shares(cpu, cpus)
    devices = [*(device for device, _ in gpus), *hosts]
    links = [link for device, rate in gpus for link in _host_links(device.name, hosts, rate)]
    if len(hosts) > 1:
        # The rate of a copy counts bytes read and bytes written.
        links.append(Link("cpu:*", "cpu:*", cpu.bandwidth / 2, HANDOVER_LATENCY))
    if len(gpus) > 1:
        # Copies between GPUs pass through main memory, so the slower link decides.
        staged = min(rate for _, rate in gpus)
        links.insert(0, Link("gpu*", "gpu*", staged, COPY_LATENCY, "{from} up", both=False))
    name = platform.node() or "this-machine"
    return Cluster(name, tuple(devices), tuple(links), description="discovered on this machine")


def to_toml(cluster: Cluster) -> str:
    """The text of a cluster file that `Cluster.read` reads back as the same cluster, if its rates
    are those of real machines."""
    head = {
        "name": cluster.name,
        "description": cluster.description,
        "transfers": cluster.transfers,
        "synchronisation": cluster.synchronisation,
    }
    tables = [_table("devices", device) for device in cluster.devices]
    tables += [_table("links", link) for link in cluster.links]
    return "\n\n".join(["\n".join(_pairs(head)), *tables]) + "\n"


def _table(name: str, content: object) -> str:
    return "\n".join([f"[[{name}]]", *_pairs(content)])


def _pairs(content: object) -> list[str]:
    """The entries with a value. Memory has its unit, because a small number without one is
    refused."""
    entries: dict[str, Any] = msgspec.to_builtins(content, enc_hook=plain)
    if entries.get("memory") is not None:
        entries["memory"] = f"{entries['memory']} B"
    return [f"{key} = {_value(v)}" for key, v in entries.items() if v not in (None, "", {})]


def _value(value: Any) -> str:
    """A TOML value; JSON's escapes of a text are TOML's, but for the delete character."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, dict):
        inside = ", ".join(f"{_value(key)} = {_value(rate)}" for key, rate in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, int):
        return str(value)
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _cpu() -> Device:
    return Device(
        name="cpu",
        kind="cpu",
        model=_cpu_model(usable_cpus()),
        memory=usable_memory(),
        flops={"float32": _multiply_rate(np.float32), "float64": _multiply_rate(np.float64)},
        bandwidth=_copy_rate(),
        launch=LAUNCH["cpu"],
    )


def _shares(cpu: Device, count: int) -> list[Device]:
    """The CPU as `count` devices; no more of them than threads run at full rate together."""
    threads = max(1, usable_cpus() // count)
    share = msgspec.structs.replace(
        cpu,
        model=_cpu_model(threads),
        memory=None if cpu.memory is None else cpu.memory // count,
        flops={dtype: _two_digits(rate / count) for dtype, rate in cpu.flops.items()},
        bandwidth=_two_digits(cpu.bandwidth / count),
        threads=threads,
    )
    return [msgspec.structs.replace(share, name=f"cpu:{i}") for i in range(count)]


def _cpu_model(threads: int) -> str:
    """The processor's name and the number of a device's threads."""
    return f"{cpu_name()} ({threads} thread{'s' * (threads != 1)})"


def _multiply_rate(dtype: type[np.floating[Any]], n: int = 768) -> float:
    """FLOP/s of a matrix product, all threads that numpy's BLAS takes."""
    a = np.ones((n, n), dtype)
    return _two_digits(2.0 * n**3 / _fastest(lambda: a @ a))


def _copy_rate(size: int = 1 << 26) -> float:
    """Bytes/s read and written by a copy that no cache holds."""
    source, target = np.ones(size, np.uint8), np.empty(size, np.uint8)
    return _two_digits(2.0 * size / _fastest(lambda: np.copyto(target, source)))


def _fastest(work: Callable[[], object], seconds: float = 0.15, least: int = 5) -> float:
    """Seconds of the fastest repetition within these seconds, after one to warm up. On a busy
    machine most repetitions are slow."""
    work()
    until = time.perf_counter() + seconds
    durations: list[float] = []
    while len(durations) < least or time.perf_counter() < until:
        start = time.perf_counter()
        work()
        durations.append(time.perf_counter() - start)
    return max(min(durations), 1e-9)


def _two_digits(rate: float) -> float:
    """Two significant digits: a short measurement on a shared machine is no more precise."""
    return float(f"{rate:.1e}")


def _cuda() -> list[tuple[Device, float]]:
    """Every GPU that CUDA shows this process, in its order, and the bytes/s of its PCIe link."""
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        return [_gpu(pynvml, i, gpu) for i, gpu in enumerate(visible_gpus())]
    except pynvml.NVMLError as error:
        raise ClusterError(f"the NVIDIA driver does not describe its GPUs: {error}") from None
    finally:
        pynvml.nvmlShutdown()


def _gpu(nvml: Any, number: int, gpu: Gpu) -> tuple[Device, float]:
    handle = nvml.nvmlDeviceGetHandleByPciBusId(gpu.bus.encode())
    device = Device(
        name=f"gpu{number}",
        model=gpu.name,
        memory=max(1, gpu.memory - FRAMEWORK_BYTES),
        flops=_cuda_flops(nvml, handle),
        bandwidth=_bus_rate(nvml, handle),
        launch=LAUNCH["gpu"],
    )
    return device, _pcie_rate(nvml, handle)


def _cuda_flops(nvml: Any, handle: Any) -> dict[str, float]:
    """Peak rates from the number of units and the highest clock."""
    capability = tuple(nvml.nvmlDeviceGetCudaComputeCapability(handle))
    single, double = CUDA_LANES.get(capability, (128, 2))
    cores = nvml.nvmlDeviceGetNumGpuCores(handle)
    clock = nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM) * 1e6
    # A core starts one fused multiply-add a cycle, which is two operations.
    float32 = 2.0 * cores * clock
    rates = {"float32": float32, "float64": float32 * double / single}
    if capability in TENSOR_RATE:
        rates["float16"] = float32 * TENSOR_RATE[capability]
        # Ampere and later: bfloat16 at the rate of float16, TF32 at half of it.
        if capability >= (8, 0):
            rates |= {"bfloat16": rates["float16"], "tfloat32": rates["float16"] / 2}
    return {dtype: _two_digits(rate) for dtype, rate in rates.items()}


def _bus_rate(nvml: Any, handle: Any) -> float:
    """Bytes/s of the GPU's memory: two transfers a clock on every wire."""
    clock = nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_MEM) * 1e6
    return _two_digits(2.0 * clock * nvml.nvmlDeviceGetMemoryBusWidth(handle) / 8)


def _pcie_rate(nvml: Any, handle: Any) -> float:
    generation = nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)
    width = nvml.nvmlDeviceGetMaxPcieLinkWidth(handle)
    lane = PCIE_LANE.get(generation, PCIE_LANE[max(PCIE_LANE)])
    return _two_digits(lane * max(width, 1) * PCIE_REACHED)


def _host_links(gpu: str, hosts: Sequence[Device], rate: float) -> Iterator[Link]:
    """Up and down between a GPU and the CPUs; all that a card sends shares its upstream lanes."""
    for host in hosts:
        yield Link(gpu, host.name, rate, COPY_LATENCY, "{from} up", both=False)
        yield Link(host.name, gpu, rate, COPY_LATENCY, "{to} down", both=False)
