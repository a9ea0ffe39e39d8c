"""The machine at home: accelerators, each on its own slot, and the host with its memory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from situate.data.cluster import Cluster, Device
from situate.errors import ClusterError

CONTEXT_BYTES = 455 * 2**20
"""Bytes that a CUDA context takes beside all buffers; measured on RTX 4090s (451 to 456 MiB)."""


@dataclass(frozen=True)
class Processor:
    """A GPU, or the host's CPU.

    Attributes:
        name: in the cluster file.
        memory: usable bytes; infinite if the file does not say.
        bandwidth: effective bytes/s of its memory.
        flops: effective operations/s of matrix products in long batches.
        launch: seconds that a layer takes beside its bytes and operations.
        shares: speed of tensor types as a fraction of the usual one, by name; 1 if missing.
        context: bytes that the driver takes beside all buffers.
        cores: of a CPU; 0 on a GPU.
    """

    name: str
    memory: float
    bandwidth: float
    flops: float
    launch: float = 0.0
    shares: Mapping[str, float] = field(default_factory=dict)
    context: int = 0
    cores: int = 0


@dataclass(frozen=True)
class Home:
    """Accelerators and their host.

    Attributes:
        name: of the cluster.
        accelerators: GPUs, in the order of the cluster file.
        host: the CPU.
        bandwidth, latency: (devices, devices) bytes/s and seconds of the links; the host is last.
    """

    name: str
    accelerators: tuple[Processor, ...]
    host: Processor
    bandwidth: tuple[tuple[float, ...], ...]
    latency: tuple[tuple[float, ...], ...]

    @property
    def processors(self) -> tuple[Processor, ...]:
        """The GPUs, and the host last."""
        return (*self.accelerators, self.host)


def home_of(cluster: Cluster) -> Home:
    """The home that a cluster describes.

    Its device of kind `cpu` is the host.

    Raises:
        ClusterError: the cluster has no CPU, or several.
    """
    hosts = [i for i, device in enumerate(cluster.devices) if device.kind == "cpu"]
    if len(hosts) != 1:
        raise ClusterError(
            f"cluster {cluster.name!r}: a language model needs one device of kind 'cpu', the host "
            f"of the others; it has {len(hosts)}"
        )
    order = [i for i in range(len(cluster.devices)) if i != hosts[0]] + hosts
    processors = [_processor(cluster.devices[i], cluster.name) for i in order]
    return Home(
        cluster.name,
        tuple(processors[:-1]),
        processors[-1],
        tuple(tuple(float(cluster.bandwidth[i, j]) for j in order) for i in order),
        tuple(tuple(float(cluster.latency[i, j]) for j in order) for i in order),
    )


def _processor(device: Device, cluster: str) -> Processor:
    cpu = device.kind == "cpu"
    flops = max(device.flops.values(), default=math.inf)
    return Processor(
        device.name,
        math.inf if device.memory is None else device.memory,
        device.bandwidth * (0.7 if cpu else 0.75),
        flops * 0.4,
        0.00025 if cpu else 0.00003,
        context=0 if cpu else CONTEXT_BYTES,
        cores=(device.threads or 1) if cpu else 0,
    )
