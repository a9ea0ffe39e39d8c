"""The plain step of a profiling worker: round trips between devices, launches, clock readings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low

from situate.data.costs import MeasuredLink
from situate.runtime.device import StepRecord

TRANSFER_SIZES = (64, 1 << 18, 1 << 20, 1 << 22, 1 << 24)
"""Bytes of the tensors in round trips: from almost none to more than most caches hold."""

MEETING_BYTES = TRANSFER_SIZES[0]
"""Bytes of a first tensor that does not count: its sender waits until the other device is there."""

ONES_KERNEL = "aten::ones"
"""The kernel that makes the tensors."""

FASTEST_LINK = 1e12
"""Bytes/s of a link on which larger tensors were no slower than the smallest."""


REPETITIONS = 100
"""Launches, or clock readings, that are timed together."""


@dataclass(frozen=True)
class RoundTrip:
    """A round trip from `first` to `second` and back, by channels `2 * number` and `2 * number +
    1`."""

    number: int
    first: int
    second: int
    size: int


def round_trips(devices: int) -> list[RoundTrip]:
    """The round trips of all pairs and sizes, in order of execution."""
    pairs = itertools.combinations(range(devices), 2)
    trips = [(a, b, size) for a, b in pairs for size in (MEETING_BYTES, *TRANSFER_SIZES)]
    return [RoundTrip(number, *trip) for number, trip in enumerate(trips)]


def round_trip_lines(trip: RoundTrip, device: int, kernel: int, op: int) -> Iterator[str]:
    """The source lines of a device in a round trip, for a placed step.

    Args:
        kernel: number of the kernel `ONES_KERNEL`.
        op: the op number of the timing.
    """
    there, back = 2 * trip.number, 2 * trip.number + 1
    if device == trip.first:
        yield f"v = f{kernel}([{trip.size // 4}])"
        yield f"began[{op}] = now(); send{there}(v); v = take{back}(); ended[{op}] = now()"
    elif device == trip.second:
        yield f"v = take{there}(); send{back}(v)"


def measured_links(
    trips: Sequence[RoundTrip], seconds: Sequence[float], names: Sequence[str]
) -> tuple[list[MeasuredLink], float]:
    """Both links of every pair, and the synchronisation seconds, which every tensor pays.

    The synchronisation is the time of the smallest tensor on the fastest link. A link's latency is
    the time of its own smallest tensor minus that.

    Args:
        seconds: of each round trip.
    """
    one_way: dict[tuple[int, int], list[float]] = {}
    for trip, both in zip(trips, seconds, strict=True):
        # Both directions run through the same memory, so half of a round trip is one way.
        one_way.setdefault((trip.first, trip.second), []).append(both / 2)
    seconds_by_pair = {pair: of_sizes for pair, (_, *of_sizes) in one_way.items()}
    # The smallest tensor has almost no bytes, so its time is latency: flags, wake-ups and a call.
    synchronisation = min((of_sizes[0] for of_sizes in seconds_by_pair.values()), default=0.0)
    links = []
    for (a, b), of_sizes in seconds_by_pair.items():
        latency, rate = fit_link(of_sizes)
        for i, j in ((a, b), (b, a)):
            links.append(MeasuredLink(names[i], names[j], latency - synchronisation, rate))
    return links, synchronisation


def fit_link(seconds: Sequence[float]) -> tuple[float, float]:
    """Latency and bytes/s, from the seconds that a tensor of each of `TRANSFER_SIZES` takes one
    way.

    The rate is fitted to all but the smallest size together, after their latency. So large tensors
    decide, since no cache holds a step's tensors.
    """
    latency, *others = seconds
    beside = sum(s - latency for s in others)
    return latency, min(
        FASTEST_LINK, sum(TRANSFER_SIZES[1:]) / beside
    ) if beside > 0 else FASTEST_LINK


@dataclass(frozen=True)
class OpNumbers:
    """The op numbers of the plain step's timings, after the program's `ops`."""

    ops: int
    trips: int

    def trip(self, number: int) -> int:
        """The number of a round trip."""
        return self.ops + number

    @property
    def launches(self) -> int:
        """The number of `REPETITIONS` launches."""
        return self.ops + self.trips

    @property
    def looks(self) -> int:
        """The number of `REPETITIONS` clock readings."""
        return self.launches + 1


def worker_clock(threads: int | None) -> str:
    """A clock of module `time`: the thread's own if one thread does all the work, which other
    programs do not disturb; otherwise the wall clock."""
    return "thread_time" if threads == 1 else "perf_counter"


def plain_step(
    trips: Sequence[RoundTrip], device: int, kernel: int, marks: OpNumbers, clock_name: str
) -> str:
    """Source of the plain step: round trips on the wall clock, then launches and clock readings.

    Args:
        kernel: number of the kernel `ONES_KERNEL`.
    """
    text = [f"from time import {clock_name} as clock"]
    for trip in trips:
        text += round_trip_lines(trip, device, kernel, marks.trip(trip.number))
    for what, op in ((f"f{kernel}([1])", marks.launches), ("clock()", marks.looks)):
        text += [f"began[{op}] = clock()", *[what] * REPETITIONS, f"ended[{op}] = clock()"]
    return "\n    ".join(["def step():", *text]) + "\n"


def median_seconds(laps: Sequence[Mapping[int, StepRecord]], device: int, op: int) -> float:
    """Median seconds over the laps of one of the `REPETITIONS` timed as op number `op`."""
    return (
        median_low([lap[device].op_ends[op] - lap[device].op_starts[op] for lap in laps])
        / REPETITIONS
    )
