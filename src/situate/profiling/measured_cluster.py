"""A cluster as it was measured."""

from __future__ import annotations

import dataclasses

import msgspec

from situate.data.cluster import Cluster, Device, Link
from situate.data.cost_lookup import measured_as
from situate.data.costs import Costs


def measured_cluster(cluster: Cluster, costs: Costs) -> Cluster:
    """The same devices with measured launches, links and synchronisation; links of pairs that were
    not measured stay."""
    measured = tuple(
        Link(a.source, a.target, _digits(a.bandwidth), _digits(a.latency), both=False)
        for a in costs.links
    )
    every = len(measured) == len(cluster.devices) * (len(cluster.devices) - 1)
    return dataclasses.replace(
        cluster,
        devices=tuple(_launching(device, costs) for device in cluster.devices),
        links=measured if every else (*cluster.links, *measured),
        synchronisation=_digits(costs.synchronisation),
        description=f"measured on {costs.machine}, {costs.date[:10]}",
    )


def _launching(device: Device, costs: Costs) -> Device:
    known = measured_as(device, costs)
    return (
        device if known is None else msgspec.structs.replace(device, launch=_digits(known.launch))
    )


def _digits(value: float) -> float:
    """Three significant ones: no measurement knows more."""
    return float(f"{value:.3g}")
