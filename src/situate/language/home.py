"""The machine at home: accelerators, each on its own slot, and the host with its memory."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from situate.data.cluster import Cluster, Device
from situate.errors import ClusterError
from situate.language import cards

CONTEXT_BYTES = 455 * 2**20
"""Bytes that a CUDA context takes beside all buffers; measured on RTX 4090s (451 to 456 MiB)."""


ACCELERATOR_LAYER, HOST_LAYER = 60e-6, 80e-6
"""Seconds that a layer takes on a GPU and on a CPU beside its bytes and operations.

The median of published runs: launches of kernels, and the barrier of a CPU's threads at each op.
"""

HOST_ATTENTION = 0.5
"""Share of a CPU's nominal operations/s that attention reaches."""

USUAL_CORES = 8
"""Cores of a CPU whose file has neither threads nor flops."""

BACKENDS = {
    "cuda": "CUDA", "rocm": "ROCm", "hip": "ROCm", "vulkan": "Vulkan", "sycl": "SYCL",
    "metal": "MTL",
}  # fmt: skip
"""llama.cpp's backends by the kind of a device."""

MAKERS = (("rdna|cdna|radeon|amd|instinct|rx", "ROCm"), ("arc|intel", "SYCL"))
"""Backends by words of a card's architecture or model; CUDA is that of all others."""

PRODUCTS_A_BYTE = 300.0
"""8-bit operations for a byte of bandwidth, on a GPU without a rate in the file or the table."""


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
        attention: effective operations/s of attention in long batches.
        context: bytes that the driver takes beside all buffers.
        cores: of a CPU; 0 on a GPU.
        backend: the beginning of its name in llama.cpp.
    """

    name: str
    memory: float
    bandwidth: float
    flops: float
    launch: float = 0.0
    shares: Mapping[str, float] = field(default_factory=dict)
    attention: float = math.inf
    context: int = 0
    cores: int = 0
    backend: str = "CUDA"


@dataclass(frozen=True)
class Home:
    """Accelerators and their host.

    Attributes:
        name: of the cluster.
        accelerators: GPUs, in the order of the cluster file.
        host: the CPU.
        bandwidth, latency: (devices, devices) bytes/s and seconds of the links; the host is last.
        upload: share of a link's bandwidth that uploads of weights reach.
    """

    name: str
    accelerators: tuple[Processor, ...]
    host: Processor
    bandwidth: tuple[tuple[float, ...], ...]
    latency: tuple[tuple[float, ...], ...]
    upload: float = cards.PINNED_UPLOAD

    @property
    def processors(self) -> tuple[Processor, ...]:
        """The GPUs, and the host last."""
        return (*self.accelerators, self.host)

    @property
    def device_names(self) -> tuple[str, ...]:
        """(GPUs,) names in llama.cpp, such as `CUDA0`: each backend counts its GPUs from 0."""
        backends = [gpu.backend for gpu in self.accelerators]
        return tuple(f"{name}{backends[:i].count(name)}" for i, name in enumerate(backends))


def home_of(cluster: Cluster, computing: float = cards.CPU_COMPUTING) -> Home:
    """The home that a cluster describes.

    Its device of kind `cpu` is the host.

    Args:
        cluster: devices, with the model of each card or its rates.
        computing: share of the host's nominal operations/s that the engine reaches.

    Raises:
        ClusterError: the cluster has no CPU, or several.
    """
    hosts = [i for i, device in enumerate(cluster.devices) if device.kind == "cpu"]
    if len(hosts) != 1:
        raise ClusterError(
            f"cluster {cluster.name!r}: a language model needs one device of kind 'cpu', the host "
            f"of the others; it has {len(hosts)}"
        )
    # The host comes last.
    order = [i for i in range(len(cluster.devices)) if i != hosts[0]] + hosts
    processors = [_processor(cluster.devices[i], cluster.name, computing) for i in order]
    makers = {_backend(device) for device in cluster.devices if device.kind != "cpu"}
    explicit = any(device.kind.lower() in BACKENDS for device in cluster.devices)
    if len(makers) > 1 and not explicit:
        # One backend knows the cards of all makers.
        processors = [replace(processor, backend="Vulkan") for processor in processors]
    return Home(
        cluster.name,
        tuple(processors[:-1]),
        processors[-1],
        tuple(tuple(float(cluster.bandwidth[i, j]) for j in order) for i in order),
        tuple(tuple(float(cluster.latency[i, j]) for j in order) for i in order),
    )


def _processor(device: Device, cluster: str, computing: float) -> Processor:
    return (
        _host(device, cluster, computing) if device.kind == "cpu" else _accelerator(device, cluster)
    )


def _host(device: Device, cluster: str, computing: float) -> Processor:
    if not math.isfinite(device.bandwidth):
        raise _missing(device, cluster, "of its memory, such as 80e9")
    peak = max(device.flops.values(), default=0.0)
    cores = device.threads or round(peak / cards.CORE_FLOPS) or USUAL_CORES
    rate = peak or cores * cards.CORE_FLOPS
    return Processor(
        device.name,
        math.inf if device.memory is None else device.memory,
        cards.cpu_bandwidth(device.bandwidth, cores, peak),
        computing * rate,
        HOST_LAYER,
        attention=HOST_ATTENTION * rate,
        cores=cores,
    )


def _accelerator(device: Device, cluster: str) -> Processor:
    """A GPU by the rates of the file, and where it has none by those of the card's model."""
    card = cards.find_card(device.model or device.name)
    shares = cards.ARCHITECTURES[card.architecture if card else ""]
    bandwidth = device.bandwidth
    if not math.isfinite(bandwidth):
        if card is None:
            raise _missing(device, cluster, "or the model of a card that situate knows")
        bandwidth = card.bandwidth
    products = _products(device, card, bandwidth)
    memory = device.memory
    if memory is None and card is not None:
        memory = card.memory * 2**30
    return Processor(
        device.name,
        math.inf if memory is None else memory,
        bandwidth * shares.reading,
        products * shares.computing,
        ACCELERATOR_LAYER,
        cards.TYPE_SHARES,
        products * shares.attention,
        CONTEXT_BYTES,
        backend=_backend(device),
    )


def _backend(device: Device) -> str:
    """llama.cpp's backend of a GPU, by its kind or else by its maker."""
    if (kind := device.kind.lower()) in BACKENDS:
        return BACKENDS[kind]
    model = device.model or device.name
    card = cards.find_card(model)
    text = f"{card.architecture} {card.name}" if card else model
    words = f" {text.lower()} "
    return next((name for maker, name in MAKERS if re.search(rf"\b({maker})", words)), "CUDA")


def _products(device: Device, card: cards.Card | None, bandwidth: float) -> float:
    """Nominal operations/s of 8-bit products, of which the shares of an architecture are.

    A rate of 32-bit floats says nothing of them: on the same chip they are 2 to 8 times as fast.
    """
    if "int8" in device.flops:
        return device.flops["int8"]
    if card is not None:
        return card.products
    return 2 * device.flops.get("float16", 0.0) or bandwidth * PRODUCTS_A_BYTE


def _missing(device: Device, cluster: str, remedy: str) -> ClusterError:
    return ClusterError(
        f"cluster {cluster!r}: device {device.name!r}: has no bandwidth; give bandwidth {remedy}"
    )
