"""Seconds of a workload as sums over layers, for a search over layouts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from situate.language.cache import CacheOptions
from situate.language.home import Home
from situate.language.layout import HOST, Layout
from situate.language.memory import OFFLOAD_BATCH
from situate.language.model import LanguageModel, Layer
from situate.language.planning.workload import Pass, Workload
from situate.language.speed import LayerSeconds, layer_seconds

Floats = NDArray[np.float64]


BY_LAYER = ("dense", "attention", "experts", "dense_upload", "expert_upload")
"""Tables of `LayerSeconds` with one row a layer."""


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
    """Prices of a workload for any ubatch; the tables of a ubatch are made once."""

    def __init__(
        self, model: LanguageModel, home: Home, options: CacheOptions, work: Workload
    ) -> None:
        self.model, self.home, self.options, self.work = model, home, options, work
        self._tables: dict[Pass, LayerSeconds] = {}

    def prices(self, ubatch: int, host_cache: bool, first: int | None, stages: int = 1) -> Prices:
        """Prices of a setting; with several stages, less than their sum is never spent.

        With pipeline parallelism each full ubatch but the first costs the slowest stage alone,
        which takes at least the mean of all stages.

        Args:
            ubatch: tokens at once.
            host_cache: keys and values are in host memory.
            first: the GPU that computes with the host's weights in long batches; None without.
            stages: GPUs that work on ubatches one behind another.
        """
        parts = [
            (1 + (c - 1) / stages if offloads and c > 1 else c, t, first if offloads else None)
            for c, t, offloads in self.tables(ubatch)
        ]
        return Prices(
            sum((c * _home(t, host_cache, f) for c, t, f in parts), np.zeros(())),
            sum((c * _away(t, host_cache, f) for c, t, f in parts), np.zeros(())),
            sum((c * t.crossing for c, t, _ in parts), np.zeros(())),
            sum((c * t.output for c, t, _ in parts), np.zeros(())),
        )

    def tables(self, ubatch: int) -> list[tuple[float, LayerSeconds, bool]]:
        """The passes of a workload: their number, seconds, and whether they are long enough for
        GPUs to compute with the host's weights."""
        return [
            (entry.count, self._table(entry), entry.tokens >= OFFLOAD_BATCH)
            for entry in self.work.passes(ubatch)
        ]

    def _table(self, entry: Pass) -> LayerSeconds:
        key = replace(entry, count=1)
        if key not in self._tables:
            model, rows = self._distinct
            table = layer_seconds(model, self.home, self.options, entry.tokens, entry.depth)
            by_layer = {name: getattr(table, name)[rows] for name in BY_LAYER}
            self._tables[key] = replace(table, **by_layer)
        return self._tables[key]

    @cached_property
    def _distinct(self) -> tuple[LanguageModel, list[int]]:
        """The model with one layer of each kind, and the kind of each layer."""
        kinds: dict[object, int] = {}
        rows: list[int] = []
        layers: list[Layer] = []
        for layer in self.model.layers:
            weights = tuple((w.type.name, w.shape, w.role) for w in layer.weights)
            kind = (weights, layer.cache, layer.experts)
            if kind not in kinds:
                kinds[kind] = len(layers)
                layers.append(layer)
            rows.append(kinds[kind])
        return replace(self.model, layers=tuple(layers)), rows


def _trunk(t: LayerSeconds, host_cache: bool, first: int | None) -> Floats:
    """(layers, devices) dense weights and attention."""
    dense = t.dense.copy()
    if first is not None:
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
    visits = t.crossing[:, runner] + t.crossing[runner]
    result: Floats = source + visits * (t.experts[:, [HOST]] > 0)
    return result
