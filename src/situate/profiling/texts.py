"""Source that workers execute to measure, in the manner of `situate.runtime.programs.source`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low

from situate.profiling import pairs
from situate.profiling.pairs import RoundTrip
from situate.runtime.device import Ran

MANY = 100
"""Things of next to no work that are timed together."""


@dataclass(frozen=True)
class Marks:
    """Under which numbers the plain step is timed: behind those of the program's `ops`."""

    ops: int
    trips: int

    def trip(self, number: int) -> int:
        """The number of a round trip."""
        return self.ops + number

    @property
    def launches(self) -> int:
        """The number of `MANY` launches."""
        return self.ops + self.trips

    @property
    def looks(self) -> int:
        """The number of `MANY` looks at the clock."""
        return self.launches + 1


def clock(threads: int | None) -> str:
    """A clock of module `time`: where one thread does all the work, its own time, which whatever
    else this machine does leaves alone; else that on the wall."""
    return "thread_time" if threads == 1 else "perf_counter"


def plain(
    trips: Sequence[RoundTrip], device: int, kernel: int, marks: Marks, clock_name: str
) -> str:
    """Round trips on the clock on the wall, then launches and looks at the clock.

    Args:
        kernel: number of the kernel `pairs.ONES`.
    """
    lines = [f"from time import {clock_name} as clock"]
    for trip in trips:
        lines += pairs.lines(trip, device, kernel, marks.trip(trip.number))
    for what, op in ((f"f{kernel}([1])", marks.launches), ("clock()", marks.looks)):
        lines += [f"began[{op}] = clock()", *[what] * MANY, f"ended[{op}] = clock()"]
    return "\n    ".join(["def step():", *lines]) + "\n"


def seconds_of_many(laps: Sequence[Mapping[int, Ran]], device: int, op: int) -> float:
    """Seconds of one of the `MANY` things that were timed as op number `op`, median of the laps."""
    return median_low([lap[device].ended[op] - lap[device].began[op] for lap in laps]) / MANY
