"""Ways of cutting a batch: equal slices, and slices by the speed and memory of the devices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from situate.data.arrays import Floats
from situate.data.problem import Problem
from situate.data.slices import nearest_samples
from situate.data.topology import accelerators
from situate.schedule.schedule import Schedule

Shares = tuple[int, ...]
"""The samples of each slice; none where the batch is taken whole."""

WHOLE: Shares = ()

MAX_SLICES_PER_DEVICE = 8
"""Most equal slices a device: each runs every op anew, and the search has as many ops more."""

A_DEVICE = (1, 2, 4)
"""Slices that each device gets where their sizes follow its speed."""


def growing(batch: int, devices: int) -> Iterator[Shares]:
    """As many equal slices as there are devices, at least two, then twice and four times as many,
    and so on."""
    count, most = max(2, devices), min(batch, MAX_SLICES_PER_DEVICE * max(2, devices))
    while count <= most:
        yield _equal(batch, count)
        count *= 2


def falling(batch: int, devices: int) -> Iterator[Shares]:
    """Half as many equal slices as there are devices, then a quarter, down to two."""
    count = min(devices, batch) // 2
    while count >= 2:
        yield _equal(batch, count)
        count //= 2


def _equal(batch: int, count: int) -> Shares:
    """Slices that are equal but for a sample, the larger first."""
    return tuple(sorted(nearest_samples([1] * count, batch), reverse=True))


def by_device(problem: Problem, batch: int, schedule: Schedule) -> Iterator[Shares]:
    """One, two and four slices a device in sizes by which all end at once, where devices are
    unequal and the sizes add up to the batch.

    Args:
        problem: the step that takes its batch whole.
        batch: its samples.
        schedule: a plan of it, by which a sample's bytes are known.
    """
    devices = accelerators(problem)
    seconds = problem.seconds[:, devices]
    speed = 1 / np.where(np.isfinite(seconds), seconds, 0).sum(axis=0).clip(1e-300)
    room = _room(problem, batch, schedule)[devices]
    if len(np.unique([speed, room], axis=1).T) == 1:
        return
    for count in A_DEVICE:
        sizes = [] if batch % count else _dealt(batch // count, speed, room)
        if len(set(sizes)) > 1:
            yield tuple(size for size in sorted(sizes, reverse=True) for _ in range(count))


def _room(problem: Problem, batch: int, schedule: Schedule) -> Floats:
    """(d,) samples that a device has room for beside an equal share of the parameters."""
    persistent = int(problem.persistent.sum())
    sample = max(1.0, (int(schedule.peak.sum()) - persistent) / batch)
    share = persistent / len(accelerators(problem))
    return np.asarray((problem.capacity - share).clip(0) / sample)


def _dealt(samples: int, speed: Floats, room: Floats) -> list[int]:
    """The sizes of the devices' slices, dealt out sample by sample to who ends first with it; none
    where they have no room for all, and of who gets nothing."""
    sizes = np.zeros(len(speed), np.int64)
    for _ in range(samples):
        ends = np.where(sizes + 1 <= room, (sizes + 1) / speed, np.inf)
        first = int(np.argmin(ends))
        if not np.isfinite(ends[first]):
            return []
        sizes[first] += 1
    return [size for size in sizes.tolist() if size]
