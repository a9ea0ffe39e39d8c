"""Names that other tools give to the devices of a cluster."""

from __future__ import annotations

from situate.data.cluster import Cluster

Place = int | str
"""The index of an accelerator, `cpu` or `disk`."""


def places(cluster: Cluster) -> list[Place]:
    """Accelerators are numbered in the cluster's order; CPUs and disks have names."""
    found: list[Place] = []
    for device in cluster.devices:
        numbered = sum(isinstance(place, int) for place in found)
        found.append(device.kind if device.kind in ("cpu", "disk") else numbered)
    return found
