"""Pipelines of ubatches: all layers on several GPUs, in stages of equal time.

The dynamic program counts the mean stage of a pipeline. Here the slowest one counts: a cut in
proportion to speed and within memory is improved one boundary at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from situate.language.layer_seconds import Floats, Timetable
from situate.language.layout import Layout
from situate.language.planning.capacity import Capacity
from situate.language.planning.divided import groups
from situate.language.planning.workload import Workload, speed_of

STEPS = (1, -1, 2, -2, 4, -4)
"""Layers by which a boundary moves."""

FINALISTS = 3
"""Cuts that are improved."""


def best_pipeline(
    capacity: Capacity,
    times: Timetable,
    work: Workload,
    kinds: Sequence[int],
    ubatches: Sequence[int],
) -> tuple[Layout | None, float]:
    """The fastest pipeline found, and its seconds; arguments as in `divided.best_divided`."""
    short = [ubatch for ubatch in ubatches if work.prompt > ubatch]
    if work.objective == "decode" or not short:
        return None, inf
    layouts = _balanced(capacity, times, work, kinds, short)
    speeds = ((speed_of(times, layout, work).objective, layout) for layout in layouts)
    ranked = sorted(speeds, key=lambda entry: entry[0])
    best: tuple[Layout | None, float] = (None, inf)
    finalists = 0
    for seconds, layout in ranked:
        if finalists == FINALISTS or not capacity.fits(layout):
            continue
        finalists += 1
        layout, seconds = _improved(capacity, times, work, layout, seconds)
        if seconds < best[1]:
            best = layout, seconds
    return best


def _balanced(
    capacity: Capacity,
    times: Timetable,
    work: Workload,
    kinds: Sequence[int],
    ubatches: Sequence[int],
) -> Iterator[Layout]:
    """Layers in proportion to the speeds of the GPUs of each set, within their memory."""
    count = len(capacity.model.layers)
    for ubatch in ubatches:
        loads = capacity.loads(ubatch, False)
        mean = (loads.trunk + loads.experts).mean()
        probe = Layout((0,), (0,) * count, (0,) * count, 0, ubatch=ubatch)
        room = capacity.first_room(probe, False, None, True)
        most = np.floor(np.maximum(room.inner, 0.0) / mean)
        # Attention is linear in depth, so a prompt's ubatches count at its middle.
        speeds = 1 / times.seconds(ubatch, work.prompt // 2).whole.sum(axis=0)
        for group in groups(kinds):
            members = list(group)
            counts = _shares(speeds[members], most[members], count)
            if counts is None:
                continue
            layers = tuple(np.repeat(members, counts).tolist())
            yield Layout(group, layers, layers, layers[-1], ubatch=ubatch)


def _shares(speeds: Floats, most: Floats, count: int) -> list[int] | None:
    """Whole numbers of this sum in proportion to speeds, and at most `most`; None if there are
    none, or one is zero."""
    if most.sum() < count:
        return None
    counts = np.zeros(len(speeds))
    for _ in range(count):
        # The next layer goes where its stage ends first.
        ends = np.where(counts < most, (counts + 1) / speeds, np.inf)
        counts[int(ends.argmin())] += 1
    return None if counts.min() < 1 else [int(number) for number in counts]


def _improved(
    capacity: Capacity, times: Timetable, work: Workload, layout: Layout, seconds: float
) -> tuple[Layout, float]:
    """A cut whose boundaries no step makes faster."""
    improving = True
    while improving:
        improving = False
        for other in _neighbours(layout):
            faster = speed_of(times, other, work).objective
            if faster < seconds and capacity.fits(other):
                layout, seconds, improving = other, faster, True
                break
    return layout, seconds


def _neighbours(layout: Layout) -> Iterator[Layout]:
    """Cuts with one boundary moved."""
    counts = [layout.layers.count(gpu) for gpu in layout.order]
    for i in range(len(counts) - 1):
        for step in STEPS:
            moved = list(counts)
            moved[i], moved[i + 1] = moved[i] + step, moved[i + 1] - step
            if min(moved) >= 1:
                layers = tuple(np.repeat(layout.order, moved).tolist())
                yield replace(layout, layers=layers, experts=layers)
