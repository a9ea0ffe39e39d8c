"""Layouts that divide every matrix over some GPUs (`-sm tensor`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

import numpy as np

from situate.language.layer_seconds import Timetable
from situate.language.layout import Layout
from situate.language.planning.capacity import Capacity, free_bytes, memory_of
from situate.language.planning.workload import Workload, speed_of


def best_divided(
    capacity: Capacity,
    times: Timetable,
    work: Workload,
    kinds: Sequence[int],
    ubatches: Sequence[int],
) -> tuple[Layout | None, float]:
    """The fastest layout with equal parts of every matrix on at least two GPUs, and its seconds.

    Args:
        capacity: memory of the home.
        times: seconds of layers.
        work: the workload.
        kinds: (GPUs,) equal numbers for GPUs that are alike; the first ones are used.
        ubatches: to choose from.
    """
    layouts = _layouts(capacity, kinds, ubatches)
    speeds = [(speed_of(times, layout, work).objective, layout) for layout in layouts]
    needs: dict[tuple[int, int], float] = {}
    for seconds, layout in sorted(speeds, key=lambda entry: entry[0]):
        # GPUs have equal parts, so that their number says what each one needs.
        key = len(layout.order), layout.ubatch
        least = min(capacity.memory[gpu] for gpu in layout.order)
        if least < needs.get(key, 0.0):
            continue
        memory = memory_of(capacity.model, layout, capacity.options, capacity.home, capacity.exact)
        if min(free_bytes(memory, capacity.home)[gpu] for gpu in (*layout.order, -1)) >= 0:
            return layout, seconds
        needs[key] = max(memory[gpu].total + memory[gpu].margin for gpu in layout.order)
    return None, inf


def _layouts(capacity: Capacity, kinds: Sequence[int], ubatches: Sequence[int]) -> Iterator[Layout]:
    """Layouts on all sets of GPUs that hold the weights."""
    count = len(capacity.model.layers)
    loads = capacity.loads(min(ubatches), False)
    for group in groups(kinds):
        share = (loads.trunk + loads.experts).sum() / len(group)
        if share > min(capacity.memory[gpu] for gpu in group):
            continue
        # As many layers on each: these are the shares that `-ts` names.
        ends = np.round(np.arange(1, len(group) + 1) * (count + 1) / len(group)).astype(int)
        places = [group[int(np.searchsorted(ends, i, "right"))] for i in range(count + 1)]
        layers = tuple(places[:-1])
        for ubatch in ubatches:
            yield Layout(group, layers, layers, places[-1], False, "tensor", ubatch)


def groups(kinds: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Sets of at least two GPUs, of those that are alike the first ones."""
    for bits in range(1 << len(kinds)):
        group = tuple(gpu for gpu in range(len(kinds)) if bits >> gpu & 1)
        first_ones = all(
            bits >> other & 1 for gpu in group for other in range(gpu) if kinds[other] == kinds[gpu]
        )
        if len(group) > 1 and first_ones:
            yield group
