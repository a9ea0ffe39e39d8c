"""Names that other tools give to the devices of a cluster."""

from __future__ import annotations

from situate.data.cluster import Cluster

DeviceName = int | str
"""The index of an accelerator, `cpu` or `disk`."""


def device_names(cluster: Cluster) -> list[DeviceName]:
    """Accelerators are numbered in the cluster's order; CPUs and disks have names."""
    names: list[DeviceName] = []
    for device in cluster.devices:
        numbered = sum(isinstance(place, int) for place in names)
        names.append(device.kind if device.kind in ("cpu", "disk") else numbered)
    return names
