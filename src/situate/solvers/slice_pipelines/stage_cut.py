"""Cuts of a line into stages that minimise the slowest stage within the devices' memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situate.data.arrays import Floats, Ints
from situate.solvers.slice_pipelines.line import Line

HALVINGS = 40
"""Bisection steps for the seconds of the slowest stage."""

ROUNDING = 1e-9
"""Relative rounding error between equal sums of times."""


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights along a line for each stage on its device.

    Attributes:
        seconds: (stages, length + 1) running sums of seconds.
        bytes: (stages, length + 1) running sums of bytes.
        room: (stages,) bytes available.
    """

    seconds: Floats
    bytes: Floats
    room: Floats

    @property
    def stages(self) -> int:
        """Number of stages."""
        return len(self.room)

    @property
    def length(self) -> int:
        """Number of places on the line."""
        return int(self.seconds.shape[1]) - 1

    def stage_bytes(self, borders: Ints) -> Floats:
        """(stages,) bytes of each stage, given the borders (stages - 1,) between them."""
        stage = np.arange(self.stages)
        begin, end = np.append(0, borders), np.append(borders, self.length)
        return np.asarray(self.bytes[stage, end] - self.bytes[stage, begin])

    def longest(self, stage: int, begin: int, limit: float) -> int:
        """The last possible end of a stage that begins at a place, within `limit` seconds and its
        room."""
        seconds, size = self.seconds[stage], self.bytes[stage]
        by_time = np.searchsorted(seconds, seconds[begin] + limit, "right") - 1
        by_size = np.searchsorted(size, size[begin] + self.room[stage], "right") - 1
        return int(max(begin, min(by_time, by_size)))

    def earliest(self, stage: int, end: int, limit: float) -> int:
        """The first possible begin of a stage that ends at a place, within `limit` seconds and its
        room."""
        seconds, size = self.seconds[stage], self.bytes[stage]
        by_time = np.searchsorted(seconds, seconds[end] - limit, "left")
        by_size = np.searchsorted(size, size[end] - self.room[stage], "left")
        return int(min(end, max(by_time, by_size)))


def weights_of(line: Line, devices: Ints, in_flight: Ints, room: Floats) -> Weights:
    """The weights of stages.

    Args:
        devices: (stages,) of each stage.
        in_flight: (stages,) number of slices whose activations each holds.
        room: (stages,) bytes available.
    """
    seconds = _running(line.seconds[:, devices].T)
    size = _running(line.persistent + in_flight[:, None] * line.activations)
    return Weights(seconds, size, room)


def cut(line: Line, weights: Weights, slack: float) -> Ints:
    """(stages - 1,) first places of all stages but the first.

    The slowest stage takes at most `1 + slack` times its optimum. Within that limit each border in
    turn is the one that the fewest bytes cross; ties go to the most even stages. If no cut fits in
    memory, the cut ignores memory.
    """
    if not _fits(weights, np.inf):
        weights = Weights(weights.seconds, weights.bytes, np.full(weights.stages, np.inf))
    limit = _least(weights) * (1 + slack)
    borders, begin = [], 0
    starts = _earliest_starts(weights, limit)
    for stage in range(weights.stages - 1):
        last = weights.longest(stage, begin, limit)
        # Sums from the line's end may round differently from those from its beginning.
        first = min(max(begin, starts[stage + 1]), last)
        seconds = weights.seconds[stage]
        even = seconds[begin] + (seconds[-1] - seconds[begin]) / (weights.stages - stage)
        window = np.arange(first, last + 1)
        uneven = np.abs(seconds[window] - even)
        begin = int(window[np.lexsort((uneven, line.crossing[window]))[0]])
        borders.append(begin)
    return np.array(borders, np.int64)


def _running(weight: Floats) -> Floats:
    """(stages, length + 1) running sums of weights (stages, length), from zero."""
    return np.pad(np.cumsum(weight, axis=1), ((0, 0), (1, 0)))


def _fits(weights: Weights, limit: float) -> bool:
    begin = 0
    for stage in range(weights.stages):
        begin = weights.longest(stage, begin, limit)
    return begin == weights.length


def _least(weights: Weights) -> float:
    """Least possible seconds of the slowest stage."""
    low, high = 0.0, float(weights.seconds[:, -1].max())
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _fits(weights, middle) else (middle, high)
    return high * (1 + ROUNDING)


def _earliest_starts(weights: Weights, limit: float) -> list[int]:
    """(stages,) the first place at which each stage may begin such that all later stages fit."""
    starts, end = [], weights.length
    for stage in reversed(range(weights.stages)):
        end = weights.earliest(stage, end, limit)
        starts.append(end)
    return starts[::-1]
