"""Clusters as training sees them: GPUs in nodes, with the links inside and between nodes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from situate.data.cluster import UNITS, Cluster, Device
from situate.errors import ClusterError
from situate.files.contents import one_line
from situate.language.training.gpus import CONTEXT, GPUS, Gpu, find_gpu, unknown_gpu

MAX_GPUS = 2**17

LINK_SHARE, NETWORK_SHARE = 0.8, 0.85
"""Shares of nominal bandwidths that NCCL's large messages reach."""

NODE_GPUS = 8
"""GPUs of a node, where a text does not say it."""

SAME_NODE = 0.4
"""GPUs whose link has this share of the fastest link's bandwidth are in one node."""

UNKNOWN_RATE = 10e12
"""FLOP/s of a device without any rate."""


@dataclass(frozen=True)
class Machine:
    """The GPUs of a cluster.

    Attributes:
        name: of the cluster.
        gpus: one entry for each GPU, those of a node one after the other.
        node: GPUs of a node.
        link: bytes/s from a GPU to others of its node, one direction.
        network: bytes/s from a node to others, one direction; of all its GPUs together.
        latency, network_latency: seconds of a message inside and between nodes.
    """

    name: str
    gpus: tuple[Gpu, ...]
    node: int
    link: float
    network: float
    latency: float = 6e-6
    network_latency: float = 15e-6

    @property
    def count(self) -> int:
        """GPUs of the cluster."""
        return len(self.gpus)

    @cached_property
    def weakest(self) -> Gpu:
        """A GPU with the least memory, rates and bandwidth of all, for equal shares of the work."""
        first = min(self.gpus, key=lambda gpu: max(gpu.rates.values(), default=0.0))
        kinds = set.intersection(*(set(gpu.rates) for gpu in self.models))
        return replace(
            first,
            memory=min(gpu.memory for gpu in self.gpus),
            bandwidth=min(gpu.bandwidth for gpu in self.gpus),
            rates={kind: min(gpu.rates[kind] for gpu in self.gpus) for kind in sorted(kinds)},
        )

    @cached_property
    def models(self) -> tuple[Gpu, ...]:
        """One GPU of each model and size."""
        return tuple({(gpu.name, gpu.memory): gpu for gpu in self.gpus}.values())

    @property
    def is_equal(self) -> bool:
        """True if all GPUs have the same rates and memory."""
        return len(self.models) == 1


def find_machine(text: str) -> Machine:
    """The machine of a preset, of a cluster file, or of a text such as `4x8xH100`.

    A text names nodes, GPUs of a node, and their model; `2xRTX 3090+RTX 4090` is one node with
    unequal GPUs, and `24GiB+12GiB` one with cards of which only the memory is known.

    Raises:
        ClusterError: there is no such cluster or GPU, or the cluster has no GPU.
    """
    cluster = named_cluster(text)
    if cluster is not None:
        return machine_of(cluster)
    groups = [part for part in _groups(text) if part is not None]
    nodes, gpus, model = groups[0]
    if len(groups) == 1:
        return machine_of_gpus(text, [model] * (nodes * gpus), gpus)
    members = [model for nodes, gpus, model in groups for _ in range(nodes * gpus)]
    return machine_of_gpus(text, members, len(members))


def named_cluster(text: str) -> Cluster | None:
    """The cluster of a preset or of a file; None for a text of GPUs.

    Raises:
        ClusterError: the text names neither GPUs nor a cluster.
    """
    is_name = text.endswith(".toml") or text in Cluster.presets() or text.startswith("identical")
    return Cluster.find(text) if is_name or None in _groups(text) else None


def is_gpu_text(text: str) -> bool:
    """True if a text names GPUs of the table.

    Raises:
        ClusterError: it has numbers and an unknown GPU, or too many GPUs.
    """
    return None not in _groups(text)


def _groups(text: str) -> list[tuple[int, int, Gpu] | None]:
    """Groups of equal GPUs in a text, with plus signs between them; None for other texts.

    Raises:
        ClusterError: a group among others names no GPU.
    """
    parts = [part.strip() for part in text.split("+")]
    groups = [_parsed(part) for part in parts]
    if any(groups) and None in groups:
        raise ClusterError(one_line(unknown_gpu(parts[groups.index(None)])))
    return groups


def _parsed(text: str) -> tuple[int, int, Gpu] | None:
    """(nodes, GPUs of a node, model) of a text such as `4x8xH100`; None if it is none."""
    match = re.fullmatch(r"(?:(\d{1,12})\s*x\s*)?(?:(\d{1,12})\s*x\s*)?([A-Za-z0-9][\w .-]*)", text)
    if match is None:
        return None
    model = gpu_of_text(match[3].strip())
    if model is None:
        if match[1]:
            raise ClusterError(one_line(unknown_gpu(match[3])))
        return None
    first, second = (int(number or 1) for number in match.groups()[:2])
    if not 1 <= first * second <= MAX_GPUS:
        raise ClusterError(f"{text[:40]}: must be 1 to {MAX_GPUS} GPUs")
    if match[2]:
        return first, second, model
    # One number counts GPUs, in nodes of the usual size where it divides them.
    count = first
    if count > NODE_GPUS and count % NODE_GPUS == 0:
        return count // NODE_GPUS, NODE_GPUS, model
    return 1, count, model


def gpu_of_text(text: str) -> Gpu | None:
    """The GPU of a model's name, or of a memory such as `24GiB`; None if it is neither."""
    if match := re.fullmatch(r"(\d{1,5}(?:\.\d{1,3})?)\s*(GB|GiB|G)", text):
        unit = UNITS["GiB" if match[2] == "G" else match[2]]
        return _of_memory(int(float(match[1]) * unit))
    return find_gpu(text, whole=True)


def _of_memory(size: int) -> Gpu:
    """The slowest GPU of the table with at least so much memory, at this size."""
    larger = [gpu for gpu in GPUS.values() if gpu.memory >= 0.95 * size]
    pool = larger or list(GPUS.values())
    model = min(pool, key=lambda gpu: (gpu.memory, gpu.rate("float16")))
    return replace(model, name=f"{size / 2**30:.0f} GiB GPU", memory=size)


def machine_of_gpus(name: str, gpus: Sequence[Gpu], node: int) -> Machine:
    """A machine of the table's GPUs.

    Args:
        name: of the cluster.
        gpus: all of them.
        node: GPUs of a node.
    """
    members = tuple(replace(gpu, memory=gpu.memory - int(CONTEXT)) for gpu in gpus)
    link, network = min(gpu.link for gpu in gpus), min(gpu.network for gpu in gpus)
    return Machine(name, members, node, LINK_SHARE * link, NETWORK_SHARE * network * node)


def machine_of(cluster: Cluster) -> Machine:
    """The GPUs of a cluster file.

    Raises:
        ClusterError: it has no GPU with memory, or nodes of different sizes.
    """
    index, nodes = _gpu_nodes(cluster)
    gpus = tuple(_gpu(cluster.devices[i], cluster.name) for i in index)
    if len(gpus) == 1:
        return Machine(cluster.name, gpus, 1, gpus[0].link, gpus[0].network)
    links = cluster.bandwidth[np.ix_(index, index)]
    fastest = links[np.isfinite(links)].max(initial=0.0) or gpus[0].link
    sizes = Counter(nodes)
    if len(set(sizes.values())) > 1:
        text = ", ".join(str(size) for size in sizes.values())
        raise ClusterError(
            f"cluster {cluster.name!r}: nodes of {text} GPUs: give nodes of equal size"
        )
    node = sizes[nodes[0]]
    return Machine(cluster.name, gpus, node, float(fastest), _network(cluster, index, node))


def gpu_devices(cluster: Cluster) -> list[int]:
    """Numbers of a cluster's GPUs in the order of its machine: node by node.

    Raises:
        ClusterError: it has no GPU.
    """
    return _gpu_nodes(cluster)[0]


def _gpu_nodes(cluster: Cluster) -> tuple[list[int], list[int]]:
    """GPUs of a cluster, those of a node one after the other, and the number of each one's node."""
    index = [i for i, device in enumerate(cluster.devices) if device.kind != "cpu"]
    if not index:
        raise ClusterError(f"cluster {cluster.name!r}: has no GPU to train on")
    links = cluster.bandwidth[np.ix_(index, index)]
    fastest = links[np.isfinite(links)].max(initial=0.0)
    # GPUs whose link is about as fast as the fastest are in one node.
    nodes = _nodes(links >= SAME_NODE * fastest)
    order = np.argsort(nodes, kind="stable")
    return [index[i] for i in order], [nodes[i] for i in order]


def _gpu(device: Device, cluster: str) -> Gpu:
    """A device with the rates of its file, and those of its model's table where it has none."""
    table = find_gpu(device.model or device.name)
    memory = device.memory or (table.memory if table else 0)
    if not memory:
        raise ClusterError(
            f"cluster {cluster!r}: {device.name} has no memory: give it memory, or the model of a "
            "known GPU"
        )
    rates = {} if table is None and device.flops else (table or _of_memory(memory)).rates
    rates = {**rates, **device.flops}
    # A card without tensor cores multiplies 16-bit numbers at its rate of float32, or faster.
    for kind in ("float16", "bfloat16", "tfloat32"):
        if table is None:
            rates.setdefault(kind, rates.get("float32", UNKNOWN_RATE))
    table = table or _of_memory(memory)
    bandwidth = device.bandwidth if np.isfinite(device.bandwidth) else table.bandwidth
    name = device.model or device.name
    return replace(table, name=name, memory=memory, bandwidth=bandwidth, rates=rates)


def _nodes(near: np.ndarray) -> list[int]:
    """The number of each GPU's node, by links that count as near, shape (gpus, gpus)."""
    nodes = [-1] * len(near)
    for start in range(len(near)):
        if nodes[start] < 0:
            number, queue = max(nodes) + 1, [start]
            while queue:
                gpu = queue.pop()
                if nodes[gpu] < 0:
                    nodes[gpu] = number
                    queue += np.flatnonzero(near[gpu]).tolist()
    return nodes


def _network(cluster: Cluster, index: Sequence[int], node: int) -> float:
    """Bytes/s from the first node to others, over all its channels; infinite with one node."""
    inside, outside = index[:node], index[node:]
    if not outside:
        return float("inf")
    # A channel counts once, however many pairs share it.
    channels = {
        int(cluster.channel[i, j]): float(cluster.bandwidth[i, j]) for i in inside for j in outside
    }
    return sum(channels.values())
