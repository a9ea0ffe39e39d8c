"""Seconds of a workload as sums over layers, for a search over layouts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from situate.language.layer_seconds import Floats, LayerSeconds, Timetable
from situate.language.layout import HOST, Layout
from situate.language.memory import OFFLOAD_BATCH
from situate.language.planning.workload import Workload


@dataclass(frozen=True)
class Prices:
    """Seconds by layer and device. The host is the last device, number `HOST`.

    Attributes:
        home: (layers, devices) a layer with its experts, all on one device.
        away: (layers, devices) the same, with its experts in host memory.
        crossing: (devices, devices) between layers.
        output: (devices,) the output.
    """

    home: Floats
    away: Floats
    crossing: Floats
    output: Floats

    def of(self, layout: Layout) -> float:
        """Seconds of a layout whose experts are with their layers or on the host."""
        places = np.array(layout.layers)
        rows = np.arange(len(places))
        with_layer = np.array(layout.experts) == places
        parts = np.where(with_layer, self.home[rows, places], self.away[rows, places])
        route = [HOST, *layout.layers, layout.output]
        crossings = sum(self.crossing[a, b] for a, b in pairwise(route))
        return float(parts.sum() + crossings + self.output[layout.output])


class PriceList:
    """Prices of a workload for any ubatch."""

    def __init__(self, times: Timetable, work: Workload) -> None:
        self.times, self.work = times, work

    def prices(self, ubatch: int, host_cache: bool, first: int | None, stages: int = 1) -> Prices:
        """Prices of a setting; with several stages, less than their sum is never spent.

        With pipeline parallelism each full ubatch but the first costs the slowest stage alone. It
        takes at least any weighted mean of all stages; weights in proportion to the speeds of GPUs
        make it that of equal stages.

        Args:
            ubatch: tokens at once.
            host_cache: keys and values are in host memory.
            first: the GPU that computes with the host's weights in long batches; None without.
            stages: GPUs that work on ubatches one behind another.
        """
        # Scalars take the shape of the first table that is added.
        home, away, crossing, output = (np.zeros(()) for _ in range(4))
        for count, t, offloads in self.tables(ubatch):
            overlapping = stages > 1 and offloads and count > 1
            weight: Floats | float = count
            if overlapping:
                weight = 1 + (count - 1) * _stage_weights(t, stages)
            leader = first if offloads else None
            home = home + weight * _home(t, host_cache, leader)
            away = away + weight * _away(t, host_cache, leader)
            crossing = crossing + (1 if overlapping else count) * t.crossing
            output = output + weight * t.output
        return Prices(home, away, crossing, output)

    def tables(self, ubatch: int) -> list[tuple[float, LayerSeconds, bool]]:
        """The passes of a workload: their number, seconds, and whether they are long enough for
        GPUs to compute with the host's weights."""
        return [
            (
                entry.count,
                self.times.seconds(entry.tokens, entry.depth),
                entry.tokens >= OFFLOAD_BATCH,
            )
            for entry in self.work.passes(ubatch)
        ]


def _stage_weights(t: LayerSeconds, stages: int) -> Floats:
    """(devices,) weights whose sum over so many GPUs is at most 1; 1 for the host."""
    speeds = 1 / np.maximum(t.whole[:, :HOST].sum(axis=0), 1e-300)
    weights = speeds / np.sort(speeds)[-stages:].sum()
    return np.append(weights, 1.0)


def _trunk(t: LayerSeconds, host_cache: bool, first: int | None) -> Floats:
    """(layers, devices) dense weights and attention."""
    dense = t.dense.copy()
    if first is not None:
        # The stream goes to the GPU that computes with the host's weights, and back.
        visit = t.crossing[HOST, first] + t.crossing[first, HOST]
        dense[:, HOST] = t.dense_upload[:, first] + visit
    return dense + (t.attention[:, [HOST]] if host_cache else t.attention)


def _home(t: LayerSeconds, host_cache: bool, first: int | None) -> Floats:
    experts = t.experts.copy()
    experts[:, HOST] = _host_experts(t, first)[:, HOST]
    return _trunk(t, host_cache, first) + experts


def _away(t: LayerSeconds, host_cache: bool, first: int | None) -> Floats:
    return _trunk(t, host_cache, first) + _host_experts(t, first)


def _host_experts(t: LayerSeconds, first: int | None) -> Floats:
    """(layers, devices) experts in host memory, whose layer is on the device."""
    runner = HOST if first is None else first
    source = t.experts[:, [HOST]] if first is None else t.expert_upload[:, [first]]
    # To the expert's device and back, in layers that have experts.
    visits = t.crossing[:, runner] + t.crossing[runner]
    result: Floats = source + visits * (t.experts[:, [HOST]] > 0)
    return result
