"""What limits a plan of a language model, and which change of the home would help most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from situate.errors import SituateError
from situate.language.cache import CacheOptions
from situate.language.expert_kinds import divided_layers, expert_places
from situate.language.home import Home
from situate.language.layout import HOST, Layout
from situate.language.model import LanguageModel, assemble, gguf_layer, typed_weights
from situate.language.planning.planner import HomePlan, Planner
from situate.language.planning.prices import PriceList, Prices
from situate.language.planning.workload import Objective
from situate.language.quantization import quantized_types

SMALLER_TYPES = ("Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q3_K_M", "Q2_K")
"""File types by size, the largest first."""

MIN_STEP = 0.9
"""A smaller type has at most this share of the bytes."""

MIN_GAIN = 0.01
"""Gains below this share are not worth a line."""


@dataclass(frozen=True)
class Change:
    """A change of the home or of the model.

    Attributes:
        name: what changes.
        seconds: of the best plan after it.
        gain: the factor by which a plan becomes faster; below 1 it becomes slower.
    """

    name: str
    seconds: float
    gain: float


def phase_shares(planner: Planner, plan: HomePlan, phase: Objective) -> dict[str, float]:
    """Shares of a phase's seconds by the part that takes them, the largest first.

    Args:
        planner: with the model and the home.
        plan: a plan without divided matrices.
        phase: `prefill` or `decode`.
    """
    layout = plan.layout
    work = replace(plan.work, objective=phase)
    first = layout.order[0] if layout.op_offload and layout.order else None
    prices = PriceList(planner.times, work).prices(layout.ubatch, layout.host_cache, first)
    parts = _parts(planner, plan, prices)
    total = sum(parts.values())
    return {name: part / total for name, part in sorted(parts.items(), key=lambda x: -x[1])}


def _parts(planner: Planner, plan: HomePlan, prices: Prices) -> Mapping[str, float]:
    layout, processors = plan.layout, planner.home.processors
    parts: dict[str, float] = {}

    def add(name: str, seconds: float) -> None:
        if seconds > 0:
            parts[name] = parts.get(name, 0.0) + float(seconds)

    shares = {i: 1.0 for i, place in enumerate(layout.experts) if place != layout.layers[i]}
    shares |= {i: _host_share(planner.model, layout, i) for i in divided_layers(layout)}
    for i, (device, expert) in enumerate(zip(layout.layers, layout.experts, strict=True)):
        name = processors[device].name
        if expert == device and i not in shares:
            add(name, prices.home[i, device])
            continue
        # The trunk of a layer alone: its whole time less that of its experts on the device.
        extra = (prices.away[i, device] - prices.home[i, device]) * shares[i]
        add("experts in host memory", max(extra, 0.0))
        add(name, prices.home[i, device])
    route = [HOST, *layout.layers, layout.output]
    add("crossings", sum(prices.crossing[a, b] for a, b in pairwise(route)))
    add(processors[layout.output].name, prices.output[layout.output])
    return parts


def _host_share(model: LanguageModel, layout: Layout, number: int) -> float:
    """The share of a layer's experts in host memory."""
    places = list(expert_places(model, layout, number))
    on_host = sum(weight.size for weight, place in places if place == HOST)
    return on_host / sum(weight.size for weight, _ in places)


def changes(planner: Planner, plan: HomePlan) -> list[Change]:
    """Changes that make plans faster, the best first."""
    results = [
        Change(name, seconds, plan.seconds / seconds)
        for name, other in _others(planner, plan)
        if (seconds := _seconds(other)) is not None
    ]
    gains = (change for change in results if change.gain > 1 + MIN_GAIN)
    return sorted(gains, key=lambda change: -change.gain)


def idle_gpus(planner: Planner, plan: HomePlan) -> list[Change]:
    """GPUs that the plan leaves out, with the plan that would use them."""
    results = []
    for gpu, processor in enumerate(planner.home.accelerators):
        if gpu in plan.layout.order:
            continue
        kind = planner.kinds[gpu]
        twins = [i for i in range(gpu) if planner.kinds[i] == kind]
        required = sum(1 << i for i in [*twins, gpu])
        seconds = _seconds(_quick(planner, plan, required=required, divided=False))
        if seconds is not None and not twins:
            results.append(Change(processor.name, seconds, plan.seconds / seconds))
    return results


def _seconds(planner: Planner) -> float | None:
    try:
        return planner.plan().seconds
    except SituateError:
        return None


def _quick(planner: Planner, plan: HomePlan, **values: Any) -> Planner:
    """A planner of the same request with the plan's ubatch alone."""
    return replace(planner, ubatches=(plan.layout.ubatch,), **values)


def _others(planner: Planner, plan: HomePlan) -> Iterator[tuple[str, Planner]]:
    """Planners after each change."""
    home = planner.home
    heads = [gpu for gpu, kind in enumerate(planner.kinds) if kind == gpu]
    for gpu in heads if len(home.accelerators) < 8 else ():
        name = home.accelerators[gpu].name
        yield f"another {name}", _quick(planner, plan, home=_with_copy(home, gpu))
    if heads:
        yield (
            "links twice as fast",
            _quick(planner, plan, home=replace(home, bandwidth=_scaled(home.bandwidth))),
        )
    host = replace(home.host, bandwidth=2 * home.host.bandwidth)
    yield "host memory twice as fast", _quick(planner, plan, home=replace(home, host=host))
    smaller = _smaller_model(planner.model)
    if smaller is not None:
        yield f"the type {smaller.file_type}", _quick(planner, plan, model=smaller)
    if plan.options.key_type == "F16" and plan.options.value_type == "F16":
        options = _quantized_cache(planner.options)
        yield "a cache in q8_0", _quick(planner, plan, options=options)


def _scaled(table: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(2 * value for value in row) for row in table)


def _quantized_cache(options: CacheOptions) -> CacheOptions:
    return replace(options, key_type="Q8_0", value_type="Q8_0")


def _with_copy(home: Home, gpu: int) -> Home:
    """The home with another GPU like one that it has, linked like it."""
    count = len(home.accelerators)
    places = [*range(count), gpu, count]

    def table(
        values: tuple[tuple[float, ...], ...], between: float
    ) -> tuple[tuple[float, ...], ...]:
        rows = np.array(values)[np.ix_(places, places)]
        rows[gpu, count] = rows[count, gpu] = between
        return tuple(tuple(float(value) for value in row) for row in rows)

    # Two cards of a home without a second one exchange data through the host.
    others = [other for other in range(count) if other != gpu]
    speed = home.bandwidth[gpu][others[0]] if others else home.bandwidth[gpu][count] / 2
    delay = home.latency[gpu][others[0]] if others else 2 * home.latency[gpu][count]
    copy = replace(home.accelerators[gpu], name=f"{home.accelerators[gpu].name}'")
    return replace(
        home,
        accelerators=(*home.accelerators, copy),
        bandwidth=table(home.bandwidth, speed),
        latency=table(home.latency, delay),
    )


def _smaller_model(model: LanguageModel) -> LanguageModel | None:
    """The model in the largest file type that is clearly smaller; None if there is none."""
    shapes = {weight.name: weight.shape for weight in model.weights}
    if any(gguf_layer(name) is None for name in shapes if name.startswith("model.")):
        return None
    for file_type in SMALLER_TYPES:
        try:
            types = quantized_types(model.sizes, shapes, file_type)
            weights = typed_weights(shapes, types, model.sizes.layers)
        except SituateError:
            continue
        other = assemble(weights, model.sizes, model.name, "config", file_type, complete=False)
        if other.size < MIN_STEP * model.size:
            return other
    return None
