"""Exchanges among the devices of a stage, as transfers from each device to the next of its team.

In a ring, every device sends to one other. The size of a transfer is chosen so that the ring takes
the exchange's seconds on the cluster's links, where transfers on one channel share it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate.data.cluster import Cluster
from situate.language.training.layout import Layout
from situate.language.training.steps.site import Site

Next = NDArray[np.int64]


@dataclass(frozen=True)
class Exchange:
    """One exchange of every device of a stage.

    Attributes:
        next: (members,) the device of the stage to which each one sends; None without an exchange.
        size: bytes of a transfer.
        rest: seconds that the reading op takes instead, if they are shorter than a link's latency.
    """

    next: Next | None
    size: int
    rest: float


@dataclass(frozen=True)
class Rings:
    """The rings of a stage, each as the next device of every device, shape (members,).

    Attributes:
        tensor: devices that divide matrices.
        context: devices that divide sequences.
        experts: devices that divide experts.
        states: replicas.
    """

    tensor: Next
    context: Next
    experts: Next
    states: Next

    @classmethod
    def of(cls, layout: Layout) -> Rings:
        """The rings of a layout; ranks count tensor parallelism first, then context, then data."""
        members = np.arange(layout.dp * layout.cp * layout.tp)
        return cls(
            tensor=_ring(members, layout.tp),
            context=_ring(members, layout.cp * layout.tp, layout.tp),
            experts=_ring(members, layout.ep * layout.etp),
            states=(members + layout.tp) % len(members),
        )


def _ring(members: Next, size: int, stride: int = 1) -> Next:
    """The next of each member in groups of neighbours, so many ranks apart."""
    result: Next = members - members % size + (members + stride) % size
    return result


def exchange(site: Site, ring: Next, seconds: float) -> Exchange:
    """The exchange of a ring that takes so many seconds.

    Args:
        site: the cluster, whose stages have consecutive GPUs.
        ring: (members,) the next device of each.
        seconds: of the exchange.
    """
    if seconds <= 0 or np.array_equal(ring, np.arange(len(ring))):
        return Exchange(None, 0, max(seconds, 0.0))
    size = _bytes_in(site, ring, seconds)
    return Exchange(ring, size, 0.0) if size > 0 else Exchange(None, 0, seconds)


def _bytes_in(site: Site, ring: Next, seconds: float) -> int:
    """The largest size at which the rings of all stages take these seconds; 0 if there is none."""
    cluster, hops = site.cluster, _hops(site, ring)
    loads = Counter(int(cluster.channel[hop]) for hop in hops)
    rooms = [_room(cluster, hop, seconds, loads) for hop in hops]
    least = min(rooms, default=0.0)
    return int(least) if np.isfinite(least) and least >= 1 else 0


def _hops(site: Site, ring: Next) -> list[tuple[int, int]]:
    """(sender, receiver) of all transfers of a ring in all stages."""
    members = len(ring)
    starts = range(0, len(site.devices), members)
    pairs = ((start + i, start + int(j)) for start in starts for i, j in enumerate(ring))
    return [(site.devices[i], site.devices[j]) for i, j in pairs]


def _room(cluster: Cluster, hop: tuple[int, int], seconds: float, loads: Counter[int]) -> float:
    """Bytes that one of the transfers on a channel moves in these seconds."""
    free = seconds / loads[int(cluster.channel[hop])] - float(cluster.latency[hop])
    return free * float(cluster.bandwidth[hop])


def ring_seconds(site: Site, ring: Next, seconds: float) -> float:
    """Seconds of one transfer, if all transfers of a ring take `seconds` together."""
    if seconds <= 0 or np.array_equal(ring, np.arange(len(ring))):
        return 0.0
    loads = Counter(int(site.cluster.channel[hop]) for hop in _hops(site, ring))
    return seconds / max(loads.values())
