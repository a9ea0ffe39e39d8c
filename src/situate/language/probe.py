"""Measured rates of this machine for language models: `situate cluster discover --probe`."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from situate.data.cluster import Cluster, Device, Link
from situate.errors import ClusterError
from situate.language.cards import ARCHITECTURES, CPU_READING, find_card
from situate.language.reading import read_language_model

READ_BYTES = 1 << 28
"""Bytes that a measurement of memory reads, far more than caches hold."""

SECONDS = 2.0
"""Time of one measurement."""

COPY_SHARE = 0.92
"""Share of a card's nominal bandwidth that a copy within its memory reaches."""

BENCH_SECONDS = 300
"""Time limit of llama-bench."""


def probe(cluster: Cluster, threads: int, model: Path | None = None) -> Cluster:
    """The cluster with measured rates instead of those of data sheets; about ten seconds a device.

    A file has nominal bandwidth, of which language models reach a share. So the probe writes the
    bandwidth of which the measured one is that share. It reads memory with numpy in all threads,
    and with torch, where that is installed and sees CUDA devices, copies within their memory,
    multiplies float16 matrices, and copies from the host. With a model and llama-bench on the
    path, the first GPU, or else the CPU, gets the bandwidth that explains the decode speed.

    Args:
        cluster: of this machine, from `discover`.
        threads: of a CPU device whose file does not say.
        model: a GGUF file that fits into the first device.

    Raises:
        ClusterError: llama-bench is missing or fails.
    """
    devices = [
        _cpu(device, threads) if device.kind == "cpu" else device for device in cluster.devices
    ]
    links = list(cluster.links)
    for i, number in _cuda_devices(devices):
        devices[i], rate = _gpu(devices[i], number)
        name = devices[i].name
        links += [Link(name, d.name, rate, 10e-6) for d in devices if d.kind == "cpu"]
    if model is not None:
        devices[0] = _by_bench(devices[0], model)
    return Cluster(
        cluster.name,
        tuple(devices),
        tuple(links),
        cluster.transfers,
        cluster.synchronisation,
        "measured on this machine",
    )


def _cpu(device: Device, usable: int) -> Device:
    threads = device.threads or usable
    rate = read_rate(threads)
    bandwidth = round(rate / CPU_READING, -6)
    return msgspec.structs.replace(device, bandwidth=bandwidth, threads=threads)


def read_rate(threads: int, size: int = READ_BYTES, seconds: float = SECONDS) -> float:
    """Bytes/s at which so many threads read memory together."""
    parts = [np.ones(max(size // threads // 4, 1), np.float32) for _ in range(threads)]
    total = sum(part.nbytes for part in parts)
    with ThreadPoolExecutor(threads) as pool:
        # Maxima of contiguous numbers run at the speed of memory, and without Python's lock.
        return total / fastest(lambda: list(pool.map(np.max, parts)), seconds)


def fastest(action: Callable[[], object], seconds: float = SECONDS) -> float:
    """Seconds of the fastest of all runs that begin within a time; two at least."""
    times: list[float] = []
    start = time.perf_counter()
    while len(times) < 2 or time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times)


def _cuda_devices(devices: list[Device]) -> list[tuple[int, int]]:
    """The index of each GPU, and its number in torch; none without torch or CUDA."""
    gpus = [i for i, device in enumerate(devices) if device.kind != "cpu"]
    if not gpus or importlib.util.find_spec("torch") is None:
        return []
    import torch

    if not torch.cuda.is_available():
        return []
    return [(i, number) for number, i in enumerate(gpus) if number < torch.cuda.device_count()]


def _gpu(device: Device, number: int) -> tuple[Device, float]:
    """The GPU with measured rates, and the bytes/s of copies from pinned host memory."""
    import torch

    place = torch.device("cuda", number)

    def timed(action: Callable[[], object]) -> float:
        action()

        def run() -> None:
            action()
            torch.cuda.synchronize(place)

        return fastest(run)

    size = 1 << 28
    source, target = (torch.empty(size, dtype=torch.uint8, device=place) for _ in range(2))
    # A copy reads and writes each byte.
    copy = 2 * size / timed(lambda: target.copy_(source))
    host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    link = size / timed(lambda: target.copy_(host, non_blocking=True))
    n = 4096
    square = torch.ones((n, n), dtype=torch.float16, device=place)
    rate = 2 * n**3 / timed(lambda: square @ square)
    flops = {**device.flops, "float16": round(rate, -9)}
    return msgspec.structs.replace(
        device, bandwidth=round(copy / COPY_SHARE, -6), flops=flops
    ), round(link, -6)


def _by_bench(device: Device, path: Path) -> Device:
    """The device with the bandwidth by which llama-bench's decode speed is that of the model."""
    speed = bench_speed(path, 0 if device.kind == "cpu" else 99)
    model = read_language_model(path)
    experts = model.bytes_by_role().get("experts", 0)
    e = model.sizes.experts
    idle = 0.0 if e is None else 1 - e.used / e.count
    embedding = 0 if model.tied else sum(weight.size for weight in model.embedding)
    # A token reads all weights but the embedding's other rows and the experts that it skips.
    rate = speed * (model.size - embedding - idle * experts)
    card = find_card(device.model)
    share = ARCHITECTURES[card.architecture if card else ""].reading
    share = CPU_READING if device.kind == "cpu" else share
    return msgspec.structs.replace(device, bandwidth=round(rate / share, -6))


def bench_speed(path: Path, layers: int) -> float:
    """Tokens/s that llama-bench decodes with so many layers on GPUs.

    Raises:
        ClusterError: llama-bench is not on the path, fails, or takes too long.
    """
    program = shutil.which("llama-bench")
    if program is None:
        raise ClusterError("llama-bench: not on the path; leave --probe-model out or install it")
    command = [program, "-m", str(path), "-p", "0", "-n", "32", "-r", "2"]
    command += ["-ngl", str(layers), "-o", "json"]
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=BENCH_SECONDS, check=True
        )
        rows: list[dict[str, Any]] = json.loads(run.stdout)
        return float(rows[0]["avg_ts"])
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError) as error:
        raise ClusterError(f"llama-bench: failed with {path}: {type(error).__name__}") from None
