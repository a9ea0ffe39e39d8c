"""Passes of slices in the order of a list schedule that admits slices at a steady pace and never
exceeds the devices' memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from situate.solvers.slice_pipelines.passes import Kind, Pass

HOP = 1e-3
"""Time of a transfer between stages, as a share of all passes of a slice."""

URGENCY: dict[Kind, int] = {"I": 0, "F": 1, "W": 2}
"""Passes that other devices wait for come first."""


@dataclass(frozen=True, eq=False)
class Stages:
    """The stages of a pipeline, in the order of the forward pass.

    Attributes:
        device: of each stage, from 0.
        seconds: by kind of pass, of each stage and slice.
        activations: bytes of a slice in each stage, from its F to its I.
        held: bytes of a slice in each stage, from its I to its W.
        room: bytes for them on each device.
    """

    device: Sequence[int]
    seconds: dict[Kind, Sequence[float]]
    activations: Sequence[float]
    held: Sequence[float]
    room: Sequence[float]


class Pace(NamedTuple):
    """Admission of slices to the first stage.

    Attributes:
        interval: seconds between two slices.
        burst: number of slices admitted at once at the start.
    """

    interval: float
    burst: int


def paced_passes(stages: Stages, slices: int, pace: Pace) -> tuple[float, list[Pass]]:
    """(seconds, all passes by start) of a list schedule; infinite seconds if it comes to a halt.

    A free device takes the most urgent pass, of the oldest slice. A forward pass needs room for its
    activations, and for those of one slice in each later stage of the device, so that slices on
    their way always reach the end of the pipeline.
    """
    return _PacedList(stages, slices, pace).run()


class _PacedList:
    def __init__(self, stages: Stages, slices: int, pace: Pace) -> None:
        self._stages, self._device = stages, stages.device
        self._last = len(stages.device) - 1
        self._hop = HOP * sum(map(sum, stages.seconds.values()))
        devices = range(len(stages.room))
        self._later = [
            [other for other in range(stage + 1, self._last + 1) if device == self._device[other]]
            for stage, device in enumerate(self._device)
        ]
        self._in_use, self._slices_in = [0.0 for _ in devices], [0] * (self._last + 1)
        # By device: ready passes by urgency, and whether a pass runs.
        self._ready: list[list[tuple[int, int, int, Pass]]] = [[] for _ in devices]
        self._busy = [False for _ in devices]
        self._events: list[tuple[float, int, bool, Pass]] = []
        self._number = count()
        for part in range(slices):
            self._at(max(0, part + 1 - pace.burst) * pace.interval, False, Pass("F", part, 0))
        # F, I and W of every slice on every stage.
        self._passes, self._expected = list[Pass](), 3 * slices * (self._last + 1)

    def run(self) -> tuple[float, list[Pass]]:
        now = 0.0
        while self._events:
            now = self._events[0][0]
            changed = set()
            while self._events and self._events[0][0] <= now:
                _, _, ends, one_pass = heappop(self._events)
                changed.add(self._device[one_pass.stage])
                (self._end if ends else self._get_ready)(now, one_pass)
            for device in sorted(changed):
                self._start(now, device)
        return (now if len(self._passes) == self._expected else float("inf")), self._passes

    def _at(self, time: float, ends: bool, one_pass: Pass) -> None:
        # The number orders events of one time by their entry.
        heappush(self._events, (time, next(self._number), ends, one_pass))

    def _get_ready(self, _: float, one_pass: Pass) -> None:
        kind, part, stage = one_pass
        # Of one slice, the last stage first.
        heappush(self._ready[self._device[stage]], (URGENCY[kind], part, -stage, one_pass))

    def _start(self, now: float, device: int) -> None:
        """Start the most urgent pass for which there is room, if the device is free."""
        if self._busy[device]:
            return
        waiting = []
        while self._ready[device]:
            entry = heappop(self._ready[device])
            if self._fits(entry[-1]):
                self._begin(now, device, entry[-1])
                break
            waiting.append(entry)
        for entry in waiting:
            heappush(self._ready[device], entry)

    def _fits(self, one_pass: Pass) -> bool:
        if one_pass.kind != "F":
            return True
        stage, size = one_pass.stage, self._stages.activations
        reserved = sum(size[later] for later in self._later[stage] if not self._slices_in[later])
        device = self._device[stage]
        return self._in_use[device] + size[stage] + reserved <= self._stages.room[device]

    def _begin(self, now: float, device: int, one_pass: Pass) -> None:
        kind, _, stage = one_pass
        if kind == "F":
            self._in_use[device] += self._stages.activations[stage]
            self._slices_in[stage] += 1
        self._busy[device] = True
        self._passes.append(one_pass)
        self._at(now + self._stages.seconds[kind][stage], True, one_pass)

    def _end(self, now: float, one_pass: Pass) -> None:
        kind, part, stage = one_pass
        device, held = self._device[stage], self._stages.held[stage]
        self._busy[device] = False
        if kind == "F":
            forward = stage < self._last
            follower = Pass("F", part, stage + 1) if forward else Pass("I", part, stage)
            self._pass_on(now, device, follower)
        elif kind == "I":
            self._in_use[device] -= self._stages.activations[stage] - held
            self._pass_on(now, device, Pass("W", part, stage))
            if stage:
                self._pass_on(now, device, Pass("I", part, stage - 1))
        else:
            self._in_use[device] -= held
            self._slices_in[stage] -= 1

    def _pass_on(self, now: float, device: int, follower: Pass) -> None:
        same = self._device[follower.stage] == device
        self._at(now if same else now + self._hop, False, follower)
