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
"""The samples of each slice; empty for the whole batch."""

WHOLE: Shares = ()

MAX_SLICES_PER_DEVICE = 8
"""Largest number of equal slices per device. Each repeats all ops, which enlarges the search."""

SLICES_PER_DEVICE = (1, 2, 4)
"""Slices for each device if their sizes follow its speed."""


def growing(batch: int, devices: int) -> Iterator[Shares]:
    """Equal slices: one per device, at least two, then twice and four times as many, and so on."""
    count, most = max(2, devices), min(batch, MAX_SLICES_PER_DEVICE * max(2, devices))
    while count <= most:
        yield _equal(batch, count)
        count *= 2


def falling(batch: int, devices: int) -> Iterator[Shares]:
    """Equal slices, half as many as devices, then a quarter, down to two."""
    count = min(devices, batch) // 2
    while count >= 2:
        yield _equal(batch, count)
        count //= 2


def _equal(batch: int, count: int) -> Shares:
    """Slices that differ by at most one sample, the larger first."""
    return tuple(sorted(nearest_samples([1] * count, batch), reverse=True))


def by_device(problem: Problem, batch: int, schedule: Schedule) -> Iterator[Shares]:
    """One, two and four slices per device, with sizes that let all devices end at once.

    There are none for equal devices, or if the sizes do not add up to the batch.

    Args:
        problem: the step with its whole batch.
        batch: its samples.
        schedule: a plan of it, for estimating a sample's bytes.
    """
    devices = accelerators(problem)
    seconds = problem.seconds[:, devices]
    # Batches a second of a device with the whole step; ops that cannot run there count 0 seconds.
    speed = 1 / np.where(np.isfinite(seconds), seconds, 0).sum(axis=0).clip(1e-300)
    room = _room(problem, batch, schedule)[devices]
    # Columns are (speed, room); a single distinct one means equal devices.
    if len(np.unique([speed, room], axis=1).T) == 1:
        return
    for count in SLICES_PER_DEVICE:
        sizes = [] if batch % count else _dealt(batch // count, speed, room)
        if len(set(sizes)) > 1:
            yield tuple(size for size in sorted(sizes, reverse=True) for _ in range(count))


def _room(problem: Problem, batch: int, schedule: Schedule) -> Floats:
    """(d,) samples that fit on a device beside an equal share of the parameters."""
    persistent = int(problem.persistent.sum())
    # Activations grow with the batch; parameters and their state do not.
    sample = max(1.0, (int(schedule.peak.sum()) - persistent) / batch)
    share = persistent / len(accelerators(problem))
    return np.asarray((problem.capacity - share).clip(0) / sample)


def _dealt(samples: int, speed: Floats, room: Floats) -> list[int]:
    """Non-zero sizes of the devices' slices.

    Each sample goes to the device that would end first with it. There are no sizes if the devices
    have no room for all samples.
    """
    sizes = np.zeros(len(speed), np.int64)
    for _ in range(samples):
        # Time of each device with one more sample; infinite beyond its room.
        ends = np.where(sizes + 1 <= room, (sizes + 1) / speed, np.inf)
        first = int(np.argmin(ends))
        if not np.isfinite(ends[first]):
            return []
        sizes[first] += 1
    return [size for size in sizes.tolist() if size]
