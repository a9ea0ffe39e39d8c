"""Steps too large for a graph, on a few devices that stand for all of a cluster.

Replicas with as many micro-batches each do the same at the same time, and so do the devices that
divide matrices, sequences or experts. Two of each keep all that one device does: its ops have the
seconds and the bytes of the whole layout, its exchanges those of the whole ring, and its part of
the network is as large as before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from situate.data.cluster import MOST_DEVICES
from situate.language.training.layout import Layout
from situate.language.training.machine import Machine
from situate.language.training.steps.division import JOINED_OPS, MAX_OPS, Division, least_ops
from situate.language.training.steps.site import Site

KEPT = 2
"""Devices that stand for all of a ring: the fewest that exchange something."""


def is_too_large(division: Division) -> bool:
    """True if the step has too many ops for a graph, or too many GPUs for a cluster."""
    return division.devices > MOST_DEVICES or least_ops(division) > MAX_OPS


def representatives(machine: Machine, division: Division) -> tuple[Site, Division]:
    """The cluster and the step of the devices that stand for all.

    Replicas are left out first, devices of a replica only if that is not enough.

    Args:
        machine: equal GPUs.
        division: equal shares of a step.
    """
    smaller = [
        replace(division, layout=layout, counts=division.counts[: layout.dp], whole=division.layout)
        for layout in _smaller_layouts(division.layout)
    ]
    # Where no layout is small enough, the smallest stands for all with its layers joined.
    chosen = next((step for step in smaller if _is_small(step)), smaller[-1])
    site = Site.of_machine(_part_of(machine, division, chosen))
    return replace(site, machine=machine), chosen


def _is_small(division: Division) -> bool:
    """True if the step's layers need not all be joined."""
    return division.devices <= MOST_DEVICES and least_ops(division) <= JOINED_OPS


def _smaller_layouts(layout: Layout) -> Iterator[Layout]:
    """The layout with fewer replicas, and with fewer devices of a replica as well."""
    for least in ({"dp"}, {"dp", "cp", "tp"}):
        degrees = {name: min(getattr(layout, name), KEPT) for name in least}
        smaller = replace(layout, **degrees)
        # Experts are divided among devices of this replica and others, as before.
        members = smaller.dp * smaller.cp * smaller.tp
        yield replace(smaller, ep=min(layout.ep * layout.etp, members), etp=1)


def _part_of(machine: Machine, division: Division, chosen: Division) -> Machine:
    """The devices that stand for all, with their share of each node's network.

    Stages that shared a node still do, and replicas whose ring left a node are in nodes of their
    own, so that their exchanges and those inside a replica use different links.
    """
    replica = chosen.layout.cp * chosen.layout.tp
    # A replica of several nodes keeps its own; smaller replicas share a node as they did.
    if division.members > machine.node:
        node = min(replica, machine.node)
    else:
        node = chosen.members * (machine.node // division.members)
    return replace(
        machine,
        gpus=machine.gpus[: chosen.devices],
        node=node,
        # A node's network is shared by its devices, so fewer of them have less of it.
        network=machine.network * node / machine.node,
    )
