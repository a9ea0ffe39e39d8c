"""The bottleneck of pipelined operation: how long a step keeps each device and channel busy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from situate.data.problem import Problem
from situate.schedule.schedule import Schedule


@dataclass(frozen=True)
class Busy:
    """A device or a channel, and the time that each step keeps it busy, in the graph's unit."""

    kind: Literal["device", "channel"]
    name: str
    seconds: float


def busiest(problem: Problem, schedule: Schedule) -> tuple[Busy, ...]:
    """Devices and channels in use, the busiest first: its time is the time between steps.

    Channels without contention set no limit.
    """
    seconds = schedule.busy(problem).tolist()
    resources = [Busy("device", *use) for use in zip(problem.cluster.names, seconds, strict=True)]
    if problem.transfers != "atomic" and problem.rules.contention:
        moving = schedule.channel_busy(problem).tolist()
        channels = zip(problem.cluster.channels, moving, strict=True)
        resources += [Busy("channel", *use) for use in channels]
    return tuple(sorted((busy for busy in resources if busy.seconds), key=lambda b: -b.seconds))
