"""Training on unequal GPUs: samples or layers in proportion to their speed and memory.

Two ways are priced, each with equal and with unequal shares: replicas with different numbers of
samples, and a pipeline whose stages have different numbers of layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from situate.language.hyperparameters import Experts
from situate.language.training.collectives import reduce_seconds
from situate.language.training.gpus import Gpu
from situate.language.training.layout import Floats, Layout, LayoutTable, Run
from situate.language.training.layout_rules import recomputations
from situate.language.training.machine import Machine
from situate.language.training.memory import MARGIN, RESERVED, last_rank, stage_memory
from situate.language.training.seconds import step_seconds
from situate.language.training.transformer import Transformer

Way = Literal["samples", "layers"]

MICRO = (1, 2, 4, 8)
"""Samples of a micro-batch that are tried."""


@dataclass(frozen=True)
class Shares:
    """A division of a step among unequal GPUs.

    Attributes:
        way: samples of replicas, or layers of a pipeline.
        shares: of each GPU.
        micro: samples of a micro-batch.
        recompute: as in `Layout`.
        seconds: of a step.
        reserved: bytes of each GPU.
        equal: all shares are equal.
        sure: the GPUs have room for 99 of 100 runs; if False, for the predicted bytes.
    """

    way: Way
    shares: tuple[int, ...]
    micro: int
    recompute: str
    seconds: float
    reserved: tuple[float, ...]
    equal: bool
    sure: bool = False

    def fits(self, machine: Machine, margin: float = MARGIN) -> bool:
        """True if every GPU has the bytes times the margin."""
        pairs = zip(self.reserved, machine.gpus, strict=True)
        return all(margin * size <= gpu.memory for size, gpu in pairs)


@dataclass(frozen=True)
class GpuPrice:
    """Seconds and bytes of a micro-batch on one GPU.

    Attributes:
        layer, ends: seconds of a layer, and of everything outside the layers.
        layer_states, layer_activations: bytes of a layer.
        ends_bytes: of embedding, output and logits.
        update: seconds of the update of all layers.
    """

    layer: float
    ends: float
    layer_states: float
    layer_activations: float
    ends_bytes: float
    update: float


def unequal_shares(model: Transformer, run: Run, machine: Machine, batch: int) -> list[Shares]:
    """The fastest division of each way, with equal and with unequal shares, as far as they fit.

    A way that has no room for 99 of 100 runs has a division with room for the predicted bytes.

    Args:
        model: the transformer.
        run: the sequence and the recipe; its layout is not read.
        machine: a node of unequal GPUs.
        batch: samples of a step.
    """
    likely = _fastest_shares(model, run, machine, batch, 1.0)
    sure = _fastest_shares(model, run, machine, batch, MARGIN)
    return sorted((likely | sure).values(), key=lambda row: row.seconds)


def _fastest_shares(
    model: Transformer, run: Run, machine: Machine, batch: int, margin: float
) -> dict[tuple[Way, bool], Shares]:
    """The fastest divisions with room for predicted bytes times a margin, by way and equality."""
    best: dict[tuple[Way, bool], Shares] = {}
    for micro in MICRO:
        for recompute in recomputations(model, run.recipe):
            layout = Layout(micro=micro, recompute=recompute)
            by_model = {
                (gpu.name, gpu.memory): _gpu_price(model, run, machine, gpu, layout)
                for gpu in machine.models
            }
            prices = [by_model[gpu.name, gpu.memory] for gpu in machine.gpus]
            rows = [
                *_by_samples(model, run, machine, prices, layout, batch),
                *_by_layers(model, machine, prices, layout, batch, margin),
            ]
            for row in rows:
                key = (row.way, row.equal)
                current = best.get(key)
                fits = row.fits(machine, margin)
                if fits and (current is None or row.seconds < current.seconds):
                    best[key] = replace(row, sure=margin == MARGIN)
    return best


def _gpu_price(
    model: Transformer, run: Run, machine: Machine, gpu: Gpu, layout: Layout
) -> GpuPrice:
    """Differences of models of one layer and of two, which the formulas price."""
    alone = Machine(machine.name, (gpu,), 1, machine.link, machine.network)
    table = LayoutTable.of([layout])
    seconds, updates, states, activations, totals = [], [], [], [], []
    for layers in (1, 2):
        small = replace(model, layers=layers, experts=_experts(model))
        parts = step_seconds(small, run, alone, table)
        updates.append(float(parts["update"][0]))
        seconds.append(sum(float(value[0]) for value in parts.values()) - updates[-1])
        memory = stage_memory(small, run, table, last_rank(table))
        sizes = {role: float(size[0]) for role, size in memory.roles.items()}
        activations.append(sizes["activations"])
        totals.append(sum(sizes.values()))
        states.append(totals[-1] - sizes["activations"])
    layer = seconds[1] - seconds[0]
    per_layer = states[1] - states[0] + activations[1] - activations[0]
    return GpuPrice(
        layer,
        max(seconds[0] - layer, 0.0),
        states[1] - states[0],
        activations[1] - activations[0],
        totals[0] - per_layer,
        model.layers * max(updates[1] - updates[0], 0.0),
    )


def _experts(model: Transformer) -> Experts | None:
    """The mixture of experts, in every layer of a small model."""
    return None if model.experts is None else replace(model.experts, dense_layers=0)


def _by_samples(
    model: Transformer,
    run: Run,
    machine: Machine,
    prices: Sequence[GpuPrice],
    layout: Layout,
    batch: int,
) -> list[Shares]:
    """Replicas with shares of the micro-batches, all states on each GPU."""
    replica_seconds = np.array([model.layers * price.layer + price.ends for price in prices])
    rounds = batch // layout.micro
    if batch % layout.micro or rounds < len(prices):
        return []
    size = np.array([float(len(prices))])
    amount = run.recipe.gradient * model.parameters
    once = float(reduce_seconds(machine, size, np.ones(1), amount)[0])
    update = max(price.update for price in prices)
    memory = tuple(
        RESERVED
        * (model.layers * (price.layer_states + price.layer_activations) + price.ends_bytes)
        for price in prices
    )
    rows = []
    for shares, equal in _divisions(rounds, 1 / replica_seconds):
        seconds = float(np.max(shares * replica_seconds)) + once + update
        counts = tuple(int(share) * layout.micro for share in shares)
        rows.append(
            Shares("samples", counts, layout.micro, layout.recompute, seconds, memory, equal)
        )
    return rows


def _divisions(total: int, speeds: Floats) -> list[tuple[Floats, bool]]:
    """(gpus,) whole shares of a total: equal ones if that is possible, and by speed."""
    count = len(speeds)
    rows = []
    if total % count == 0:
        rows.append((np.full(count, total / count), True))
    shares = np.maximum(np.floor(total * speeds / speeds.sum()), 1.0)
    while shares.sum() < total:
        # The next micro-batch goes where it ends first.
        shares[int(np.argmin((shares + 1) / speeds))] += 1
    while shares.sum() > total:
        shares[int(np.argmax(np.where(shares > 1, shares / speeds, 0.0)))] -= 1
    rows.append((shares, False))
    return rows


def _by_layers(
    model: Transformer,
    machine: Machine,
    prices: Sequence[GpuPrice],
    layout: Layout,
    batch: int,
    margin: float,
) -> list[Shares]:
    """A pipeline of 1F1B with shares of the layers."""
    count = batch // layout.micro
    stages = len(prices)
    if batch % layout.micro or stages > model.layers:
        return []
    # 1F1B: a micro-batch for this stage and for each later one.
    flights = np.minimum(stages - np.arange(stages), count)
    rows = []
    even = np.full(stages, model.layers // stages, float)
    even[: model.layers % stages] += 1
    capacity = np.array([gpu.memory / (margin * RESERVED) for gpu in machine.gpus])
    # Layers beside the ends: their states once, their activations for each micro-batch.
    room = [
        (limit - _ends_share(i, stages) * price.ends_bytes)
        / (price.layer_states + flights[i] * price.layer_activations)
        for i, (limit, price) in enumerate(zip(capacity, prices, strict=True))
    ]
    by_speed = _layers_by_speed(model.layers, prices, np.floor(np.maximum(room, 0.0)))
    for layers, equal in ((even, True), (by_speed, False)):
        if layers is not None:
            rows.append(_pipeline(prices, layers, flights, layout, count, equal))
    return rows


def _ends_share(stage: int, stages: int) -> float:
    """Share of embedding, output and logits on a stage."""
    return 0.3 * (stage == 0) + 0.7 * (stage == stages - 1)


def _layers_by_speed(layers: int, prices: Sequence[GpuPrice], room: Floats) -> Floats | None:
    """(stages,) layers that make the slowest stage fast; None if memory does not suffice."""
    if room.sum() < layers or room.min() < 1:
        return None
    seconds = np.array([price.layer for price in prices])
    ends = np.array([price.ends * _ends_share(i, len(prices)) for i, price in enumerate(prices)])
    shares = np.ones(len(prices))
    while shares.sum() < layers:
        # Each layer goes to the stage that ends first with it.
        after = np.where(shares < room, (shares + 1) * seconds + ends, np.inf)
        shares[int(np.argmin(after))] += 1
    return shares


def _pipeline(
    prices: Sequence[GpuPrice],
    layers: Floats,
    flights: Floats,
    layout: Layout,
    count: int,
    equal: bool,
) -> Shares:
    stages = len(prices)
    ends = [_ends_share(i, stages) for i in range(stages)]
    busy = [layers[i] * price.layer + ends[i] * price.ends for i, price in enumerate(prices)]
    # The slowest stage works on every micro-batch; the others delay the first and the last.
    seconds = count * max(busy) + sum(busy) - max(busy)
    seconds += max(price.update for price in prices) / stages
    memory = tuple(
        RESERVED
        * float(
            layers[i] * (price.layer_states + flights[i] * price.layer_activations)
            + ends[i] * price.ends_bytes
        )
        for i, price in enumerate(prices)
    )
    shares = tuple(int(share) for share in layers)
    return Shares("layers", shares, layout.micro, layout.recompute, float(seconds), memory, equal)
