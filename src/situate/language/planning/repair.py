"""Layouts with less on GPUs that lack memory, one layer at a time.

The room that a search assumes differs a little from the buffers of the layout that it finds. Where
that layout does not fit, these are its neighbours that may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from situate.language.layout import HOST, Layout
from situate.language.memory import DeviceMemory


class Priced(Protocol):
    """A layout with its figures, as a plan has them."""

    @property
    def layout(self) -> Layout: ...
    @property
    def memory(self) -> tuple[DeviceMemory, ...]: ...
    @property
    def free(self) -> tuple[float, ...]: ...
    @property
    def feasible(self) -> bool: ...
    @property
    def seconds(self) -> float: ...


Plan = TypeVar("Plan", bound=Priced)


def overflow(plan: Priced) -> float:
    """Bytes that all devices lack together."""
    return sum(
        max(-free, 0.0)
        for free, part in zip(plan.free, plan.memory, strict=True)
        if part.total or part.margin
    )


def fitting_neighbour(plan: Plan, host_parts: bool, price: Callable[[Layout], Plan]) -> Plan | None:
    """A plan that fits, by steps that each leave less overflow; None if they lead nowhere.

    Args:
        plan: that does not fit.
        host_parts: layers, experts and the output may go to the host.
        price: the figures of a layout.
    """
    while not plan.feasible:
        full = [gpu for gpu, free in enumerate(plan.free[:-1]) if free < 0]
        following = [price(layout) for layout in _lighter(plan.layout, full, host_parts)]
        best = min(following, key=lambda one: (overflow(one), one.seconds), default=None)
        if best is None or overflow(best) >= overflow(plan):
            return None
        plan = best
    return plan


def _lighter(layout: Layout, full: Sequence[int], host_parts: bool) -> Iterator[Layout]:
    """The layout with a layer, its experts or the output taken from one of the full GPUs."""
    count = len(layout.layers)
    for gpu in full:
        own = [i for i, place in enumerate(layout.layers) if place == gpu]
        if own:
            # A run's first layer may go to the device before it, its last layer to the one after.
            before = layout.layers[own[0] - 1] if own[0] else HOST
            if before != HOST or host_parts:
                yield _moved(layout, own[0], before)
            if own[-1] < count - 1:
                yield _moved(layout, own[-1], layout.layers[own[-1] + 1])
        resident = [i for i in own if layout.experts[i] == gpu]
        if host_parts and resident:
            i = resident[0]
            experts = (*layout.experts[:i], HOST, *layout.experts[i + 1 :])
            yield replace(layout, experts=experts)
        if host_parts and layout.output == gpu:
            yield _without_idle(replace(layout, output=HOST))


def _moved(layout: Layout, layer: int, place: int) -> Layout:
    """The layout with a layer elsewhere, and its experts if they were beside it."""
    layers, experts = list(layout.layers), list(layout.experts)
    if experts[layer] == layers[layer]:
        experts[layer] = place
    layers[layer] = place
    return _without_idle(replace(layout, layers=tuple(layers), experts=tuple(experts)))


def _without_idle(layout: Layout) -> Layout:
    """The layout without GPUs that hold nothing, except the first, which computes for the host."""
    used = {*layout.layers, *layout.experts, layout.output}
    return replace(
        layout, order=tuple(gpu for i, gpu in enumerate(layout.order) if gpu in used or not i)
    )
