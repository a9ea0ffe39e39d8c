"""CPU devices: the whole step, op by op, in the processes that a placed step has."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from statistics import median_low

import msgspec

from situate.data.cluster import Device
from situate.data.costs import MeasuredDevice, MeasuredLink, Timing
from situate.data.graph import Graph
from situate.profiling.bench import Bench
from situate.profiling.op_costs import contention, efficiencies, timings, workspace
from situate.profiling.plain_step import RoundTrip, measured_links, median_seconds, round_trips
from situate.profiling.replay import is_long, seconds_alone
from situate.profiling.workers import ProfilingWorkers
from situate.runtime.device import StepRecord
from situate.runtime.hardware import RealDevice
from situate.runtime.subject import Subject

SECONDS_PER_KIND = 1.0
"""Seconds of repetition for steps of one kind, alone or together."""

MIN_STEPS, MAX_STEPS = 3, 21
"""Fewest and most steps of one kind. Both are odd: of two, an op's low median would be the faster
one."""

LONG_STEP_SECONDS = 4.0
"""Seconds of a step above which one repetition suffices."""

ROUND_TRIP_LAPS = 13
"""Repetitions of the round trips; the first is a warm-up."""

Step = Mapping[int, StepRecord]
"""The record of every device that took part in a step."""


class InSitu:
    """Measures with workers on construction: round trips, steps of one device alone, steps of all.

    A first step of all devices warms them up. Then one device of each sort runs alone, then all run
    together. For a long step, the distinct ops are measured instead, and nothing together.

    Args:
        devices, reals: the workers' devices, of the cluster and of this machine.

    Raises:
        SituateError: the step failed on a device.
    """

    def __init__(
        self,
        workers: ProfilingWorkers,
        subject: Subject,
        devices: Sequence[Device],
        reals: Sequence[RealDevice],
    ) -> None:
        self._devices, self._reals = devices, reals
        self._graph: Graph = subject.program.graph
        self._trips = round_trips(len(devices))
        with closing(Bench(subject, reals, self._trips)) as bench:
            self._marks = bench.marks
            workers.assign(bench.assignments, bench.block)
        everyone, sorts = range(len(devices)), distinct_devices(devices)
        # The first lap warms up.
        laps = [
            (workers.run(everyone, timed=False), workers.overhead) for _ in range(ROUND_TRIP_LAPS)
        ][1:]
        self._laps = [lap for lap, _ in laps]
        self._overheads = [overhead for _, overhead in laps]
        self._together: list[Step] = []
        self._allocated: Step = {}
        self._steps: dict[int, list[Step]] = {}
        if any(is_long(self._graph, devices[i]) for i in sorts):
            self._alone = {i: seconds_alone(subject.program, reals[i]) for i in sorts}
        else:
            self._run_steps(workers, everyone, sorts)
            self._alone = {i: self._timings(self._steps[i], i) for i in sorts}

    def _run_steps(
        self, workers: ProfilingWorkers, everyone: Sequence[int], sorts: Sequence[int]
    ) -> None:
        workers.run(everyone, timed=True)  # the first touch of its memory takes long
        self._steps = {i: _repeat_steps(workers, [i]) for i in sorts}
        self._allocated = workers.run(sorts[:1], timed=True, memory=True)
        if len(everyone) > 1:
            self._together = _repeat_steps(workers, everyone)

    def device_costs(self) -> list[MeasuredDevice]:
        """The measured devices, one of each sort."""
        return [self._device(i) for i in self._alone]

    def links(self) -> tuple[list[MeasuredLink], float]:
        """The measured links between all devices, and the synchronisation seconds."""
        seconds = [self._there_and_back(trip) for trip in self._trips]
        return measured_links(self._trips, seconds, [device.name for device in self._devices])

    def overhead(self) -> float:
        """Seconds of a step on several devices beyond the devices' own work."""
        return median_low(self._overheads) if len(self._devices) > 1 else 0.0

    def _device(self, i: int) -> MeasuredDevice:
        device, alone = self._devices[i], self._alone[i]
        costs = MeasuredDevice(
            name=device.name,
            kind=device.kind,
            model=device.model,
            threads=self._reals[i].threads,
            flops=device.flops,
            bandwidth=device.bandwidth if math.isfinite(device.bandwidth) else None,
            launch=median_seconds(self._laps, i, self._marks.launches),
            wall=self._wall(i),
            seconds=alone,
            workspace=workspace(self._graph, self._allocated[i]) if i in self._allocated else {},
            contention=self._contention(i),
        )
        return msgspec.structs.replace(costs, efficiency=efficiencies(self._graph.ops, costs))

    def _timings(self, steps: Sequence[Step], i: int) -> dict[str, Timing]:
        look = median_seconds(self._laps, i, self._marks.looks)
        return timings(self._graph, [step[i] for step in steps], look)

    def _contention(self, i: int) -> dict[str, float]:
        if len(self._devices) == 1 or not self._together:
            return {}
        return contention(self._graph, self._alone[i], self._timings(self._together, i))

    def _wall(self, i: int) -> float:
        """Wall seconds of a step for each second of its ops; 1 if ops ran alone."""
        if i not in self._steps:
            return 1.0
        alone = self._alone[i]
        op_seconds = sum(alone[op.signature].median for op in self._graph.ops if op.signature)
        if op_seconds <= 0:
            return 1.0
        step_seconds = median_low([step[i].end - step[i].start for step in self._steps[i]])
        return max(1.0, step_seconds / op_seconds)

    def _there_and_back(self, trip: RoundTrip) -> float:
        """The lower quartile of a round trip: both devices wait for each other on the wall clock,
        which other programs delay."""
        op = self._marks.trip(trip.number)
        records = [lap[trip.first] for lap in self._laps]
        return sorted(r.op_ends[op] - r.op_starts[op] for r in records)[len(records) // 4]


def distinct_devices(devices: Sequence[Device]) -> list[int]:
    """The first device of each kind, model and number of threads."""
    sorts: dict[tuple[str, str, int | None], int] = {}
    for i, device in enumerate(devices):
        sorts.setdefault((device.kind, device.model, device.threads), i)
    return list(sorts.values())


def _repeat_steps(workers: ProfilingWorkers, members: Sequence[int]) -> list[Step]:
    """Steps of these devices for `SECONDS_PER_KIND`, and at least `MIN_STEPS` unless they are
    long."""
    steps: list[Step] = [workers.run(members, timed=True)]
    seconds = _step_seconds(steps[0])
    fewest = MIN_STEPS if seconds < LONG_STEP_SECONDS else 1
    count = min(MAX_STEPS, max(fewest, int(SECONDS_PER_KIND / max(seconds, 1e-9))))
    # An even number of further steps keeps the total odd, as the low median needs.
    return steps + [workers.run(members, timed=True) for _ in range(2 * (count // 2))]


def _step_seconds(step: Step) -> float:
    return max(record.end - record.start for record in step.values())
