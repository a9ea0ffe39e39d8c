"""A cluster in two forms: GPUs for the formulas of training, devices for the execution model."""

from __future__ import annotations

from dataclasses import dataclass

from situate.data.cluster import Cluster, Device, Link
from situate.data.op_classes import DTYPES
from situate.language.training.machine import Machine, find_machine, gpu_devices, named_cluster

LAUNCH = 6e-6
"""Seconds to launch an op, as in the presets. Ops of layouts have seconds of their own."""


@dataclass(frozen=True)
class Site:
    """A cluster.

    Attributes:
        machine: its GPUs for the formulas.
        cluster: its devices and links.
        devices: number in the cluster of each GPU of the machine.
    """

    machine: Machine
    cluster: Cluster
    devices: tuple[int, ...]

    @classmethod
    def of_machine(cls, machine: Machine) -> Site:
        """The site of a machine of the table's GPUs.

        Raises:
            ClusterError: it has more GPUs than a cluster may have devices.
        """
        return cls(machine, _cluster_of(machine), tuple(range(machine.count)))

    def key(self, gpu: int) -> str:
        """The key of seconds on a GPU: its model, or its name if it has none."""
        device = self.cluster.devices[self.devices[gpu]]
        return device.model or device.name


def find_site(text: str) -> Site:
    """The site of a preset, of a cluster file, or of a text such as `4x8xH100`.

    Raises:
        ClusterError: there is no such cluster or GPU, or the cluster has no GPU.
    """
    machine, cluster = find_machine(text), named_cluster(text)
    if cluster is not None:
        return Site(machine, cluster, tuple(gpu_devices(cluster)))
    return Site.of_machine(machine)


def _cluster_of(machine: Machine) -> Cluster:
    """A cluster of a machine's GPUs. A GPU has one port to its node, and a node one to others."""
    devices = tuple(
        Device(
            f"node{i // machine.node}-gpu{i % machine.node}",
            model=gpu.name,
            memory=gpu.memory,
            flops={kind: rate for kind, rate in gpu.rates.items() if kind in DTYPES},
            bandwidth=gpu.bandwidth,
            launch=LAUNCH,
        )
        for i, gpu in enumerate(machine.gpus)
    )
    nodes = range(-(-machine.count // machine.node))
    links = [
        Link(f"node{i}-*", "*", machine.network, machine.network_latency, f"node{i} network", False)
        for i in nodes
        if len(nodes) > 1
    ]
    links += [
        Link(f"node{i}-*", f"node{i}-*", machine.link, machine.latency, "{from} link", False)
        for i in nodes
    ]
    return Cluster(machine.name, devices, tuple(links))
