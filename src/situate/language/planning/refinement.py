"""Small changes of a layout, as long as they make it faster.

A search measures the room beside buffers on the layouts that it visits. Another layout may leave
more room, above all on small cards. So neighbours of the best layout are tried: a change of its
frame (order of GPUs, place of the output and of the cache, op offload) with a change of its load
(one layer, or the experts of one layer, on another device). In one layer of each GPU, the kinds of
experts' matrices (gate, up, down) may be on different sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations, product

from situate.language.expert_kinds import (
    divided_layers,
    expert_places,
    kind_sizes,
    with_kinds,
)
from situate.language.layer_seconds import Floats
from situate.language.layout import HOST, Layout
from situate.language.model import LanguageModel, Layer, gguf_layer
from situate.language.planning.capacity import Capacity

MIN_GAIN = 1e-9
"""Relative gains of seconds below this are none."""


def refined(
    layout: Layout, capacity: Capacity, seconds_of: Callable[[Layout], float], proved: bool = False
) -> Layout:
    """A layout with layers in turn that no neighbour improves, from one that fits.

    Args:
        layout: to begin with.
        capacity: memory of the home.
        seconds_of: the objective.
        proved: no layout with whole experts is faster, so that experts are divided alone.
    """
    seconds = seconds_of(layout)
    following: Layout | None = layout
    while following is not None:
        layout = following
        following = None
        for neighbours in _neighbourhoods(layout, capacity, proved):
            distinct = enumerate(dict.fromkeys(map(_without_idle, neighbours)))
            speeds = ((seconds_of(other), i, other) for i, other in distinct)
            faster = sorted(entry for entry in speeds if entry[0] < seconds * (1 - MIN_GAIN))
            if best := next((entry for entry in faster if capacity.fits(entry[2])), None):
                seconds, _, following = best
                break
    return layout


def _neighbourhoods(layout: Layout, capacity: Capacity, proved: bool) -> Iterator[Iterator[Layout]]:
    """Single changes, then pairs of them."""
    model, gpus = capacity.model, len(capacity.home.accelerators)
    divisions = _divisions(layout, model, capacity.free(layout))
    if proved:
        yield divisions
        return
    yield chain(_loads(layout, model), _frames(layout, gpus), divisions)
    yield (pair for other in _loads(layout, model) for pair in _frames(other, gpus))


def _frames(layout: Layout, gpus: int) -> Iterator[Layout]:
    """The layout with another order, output, place of the cache, or without op offload."""
    yield replace(layout, op_offload=not layout.op_offload)
    for host_cache, output in product((False, True), range(HOST, gpus)):
        order = layout.order
        if output != HOST and output not in order:
            order = (*order, output)
        yield replace(layout, output=output, order=order, host_cache=host_cache)
    runs = _runs(layout)
    for i in range(0 if layout.moved else len(runs) - 1):
        yield _in_order(layout, [*runs[:i], runs[i + 1], runs[i], *runs[i + 2 :]])
    if len(runs) > 2 and not layout.moved:
        yield _in_order(layout, runs[::-1])
    for gpu in layout.order[1:]:
        if gpu not in layout.layers:
            yield replace(layout, order=(gpu, *(one for one in layout.order if one != gpu)))


def _runs(layout: Layout) -> list[int]:
    """GPUs with layers, in their order."""
    return [gpu for gpu in layout.order if gpu in layout.layers]


def _in_order(layout: Layout, runs: Sequence[int]) -> Layout:
    """The layout with its runs of layers in another order, each with its own experts away."""
    count = len(layout.layers)
    members = [i for gpu in (HOST, *runs) for i in range(count) if layout.layers[i] == gpu]
    layers = tuple(layout.layers[i] for i in members)
    experts = tuple(layout.experts[i] for i in members)
    idle = [gpu for gpu in layout.order if gpu not in runs]
    leading = [gpu for gpu in idle if gpu == layout.order[0]]
    order = (*leading, *runs, *(gpu for gpu in idle if gpu not in leading))
    return replace(layout, order=order, layers=layers, experts=experts)


def _loads(layout: Layout, model: LanguageModel) -> Iterator[Layout]:
    """The layout with a layer at the end of a run elsewhere, or with the experts of one."""
    count = len(layout.layers)
    mixtures = [layer.experts is not None for layer in model.layers]
    for i in range(count - 1):
        a, b = layout.layers[i], layout.layers[i + 1]
        if a != b:
            # Either layer at the border goes over it.
            for layer, place in ((i, b), (i + 1, a)):
                for expert in {place, HOST} if mixtures[layer] else {place}:
                    yield _moved(layout, layer, place, expert)
    for gpu in _runs(layout):
        members = [i for i in range(count) if layout.layers[i] == gpu and mixtures[i]]
        home = [i for i in members if layout.experts[i] == gpu]
        away = [i for i in members if layout.experts[i] == HOST]
        for i in _ends(away):
            yield _moved(layout, i, gpu, gpu)
        for i in _ends(home):
            yield _moved(layout, i, gpu, HOST)
            for j in _ends(away):
                yield _moved(_moved(layout, i, gpu, HOST), j, gpu, gpu)


def _divisions(layout: Layout, model: LanguageModel, free: Floats) -> Iterator[Layout]:
    """The layout with some kinds of experts of one layer on its GPU and the others on the host.

    Args:
        layout: to change.
        model: its layers.
        free: (GPUs + 1,) bytes of each device beside the layout.
    """
    divided = divided_layers(layout)
    for gpu in _runs(layout):
        members = [i for i, place in enumerate(layout.layers) if place == gpu]
        own = [i for i in members if i in divided]
        away = [i for i in members if model.layers[i].experts and layout.experts[i] == HOST]
        for i in own or _ends(away):
            here = [w.size for w, place in expert_places(model, layout, i) if place == gpu]
            for kinds, size in _subsets(model.layers[i]):
                if size - sum(here) <= free[gpu]:
                    yield with_kinds(model, layout, i, kinds, gpu, HOST)


def _subsets(layer: Layer) -> Iterator[tuple[frozenset[str], int]]:
    """Sets of kinds with their bytes; one of those that differ by equal kinds of input alone."""
    sizes = kind_sizes(layer)
    seen = set()
    for number in range(len(sizes) + 1):
        for kinds in combinations(sorted(sizes), number):
            size = sum(sizes[kind] for kind in kinds)
            key = "down" in kinds, number, size
            if key not in seen:
                seen.add(key)
                yield frozenset(kinds), size


def _ends(numbers: Sequence[int]) -> list[int]:
    """The first and the last of some layers."""
    return sorted({*numbers[:1], *numbers[-1:]})


def _moved(layout: Layout, layer: int, place: int, expert: int) -> Layout:
    """The layout with a layer and its experts elsewhere."""
    layers, experts = list(layout.layers), list(layout.experts)
    layers[layer], experts[layer] = place, expert
    moved = tuple(pair for pair in layout.moved if gguf_layer(pair[0]) != layer)
    return replace(layout, layers=tuple(layers), experts=tuple(experts), moved=moved)


def _without_idle(layout: Layout) -> Layout:
    """The layout without GPUs that hold nothing, except the first, which computes for the host."""
    used = {*layout.layers, *layout.experts, layout.output, *(place for _, place in layout.moved)}
    helping = layout.op_offload and HOST in used
    order = tuple(gpu for i, gpu in enumerate(layout.order) if gpu in used or (helping and not i))
    return replace(layout, order=order, host_cache=layout.host_cache and bool(order))
