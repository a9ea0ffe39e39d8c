"""The transfers that a placement may need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from situate.data.problem import Problem


@dataclass(frozen=True)
class Move:
    """A possible transfer of a tensor from one device to another.

    Attributes:
        tensor, source, target: indices.
        seconds: its duration.
    """

    tensor: int
    source: int
    target: int
    seconds: float

    @property
    def arrival(self) -> tuple[int, int]:
        """(tensor, target): a device receives a tensor once, from whichever source."""
        return self.tensor, self.target


def moves_of(problem: Problem) -> Iterator[Move]:
    """All transfers that some placement needs, by tensor, without signals."""
    signal = problem.signal
    for tensor in np.flatnonzero(~signal).tolist():
        sources = np.flatnonzero(problem.allowed[problem.unit[problem.producer[tensor]]]).tolist()
        others = remote_units(problem, tensor)
        for target in np.flatnonzero(problem.allowed[others].any(axis=0)).tolist():
            for source in sources:
                if source != target:
                    seconds = problem.transfer_time(tensor, source, target)
                    yield Move(tensor, source, target, seconds)


def remote_units(problem: Problem, tensor: int) -> list[int]:
    """Units other than the producer's that read a tensor."""
    readers = consumers_of(problem, tensor)
    home = int(problem.unit[problem.producer[tensor]])
    return sorted({int(problem.unit[op]) for op in readers} - {home})


def consumers_of(problem: Problem, tensor: int) -> list[int]:
    """Ops that read a tensor."""
    first, last = problem.consumer_start[tensor : tensor + 2]
    readers: list[int] = problem.consumers[first:last].tolist()
    return readers


def size_of_model(problem: Problem) -> int:
    """Intervals of the model: ops by the devices that they may run on, and transfers."""
    # (units,) number of devices of each. Counting producers and readers needs no `Move` objects.
    devices = problem.allowed.sum(axis=1)
    count = int(devices[problem.unit].sum())
    for tensor in np.flatnonzero(~problem.signal).tolist():
        sources = problem.allowed[problem.unit[problem.producer[tensor]]]
        targets = problem.allowed[remote_units(problem, tensor)].any(axis=0)
        count += int(sources.sum() * targets.sum() - (sources & targets).sum())
    return count
