"""Variables of a model: the devices of units as literals, and the transfers that follow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

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
        # All pairs of different devices.
        count += int(sources.sum() * targets.sum() - (sources & targets).sum())
    return count


class OutOfTime(Exception):
    """The time to build a model is spent."""


class Placing:
    """The placement of units in a model.

    Args:
        problem: the problem to plan.
        model: a `CpModel`; receives variables and constraints.
        finished: returns True if the time to build the model is spent.

    Attributes:
        on: by (unit, allowed device), the literal that the unit runs there.
        moves: all transfers that some placement needs.
        occurs: (moves,) the literals that transfers take place. A needless transfer may be true; it
            only costs time and memory.
        received: by (tensor, device), the literal that the device receives the tensor.
        moves_from_home, arrivals_of: by tensor, the indices of its moves, and its keys in
            `received`.
    """

    def __init__(
        self, problem: Problem, model: Any, finished: Callable[[], bool] = lambda: False
    ) -> None:
        self.problem, self.model = problem, model
        self._finished = finished
        self.on = {
            (unit, device): model.new_bool_var("")
            for unit, device in np.argwhere(problem.allowed).tolist()
        }
        for unit in range(problem.units):
            model.add_exactly_one(self.on[unit, d] for d in self.devices(unit))
        self.moves: list[Move] = list(moves_of(problem))
        self.occurs = [model.new_bool_var("") for _ in self.moves]
        self.received = {move.arrival: model.new_bool_var("") for move in self.moves}
        self.moves_from_home: defaultdict[int, list[int]] = defaultdict(list)
        self.arrivals_of: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for index, move in enumerate(self.moves):
            self.moves_from_home[move.tensor].append(index)
        for arrival in self.received:
            self.arrivals_of[arrival[0]].append(arrival)
        self._send()

    def go_on(self) -> None:
        """
        Raises:
            OutOfTime: the time to build the model is spent.
        """
        if self._finished():
            raise OutOfTime

    def devices(self, unit: int) -> list[int]:
        """Devices that a unit may run on."""
        allowed: list[int] = np.flatnonzero(self.problem.allowed[unit]).tolist()
        return allowed

    def home(self, tensor: int) -> int:
        """The unit of a tensor's producer."""
        return int(self.problem.unit[self.problem.producer[tensor]])

    def readers(self, tensor: int, device: int) -> list[int]:
        """Ops that may read a tensor on a device."""
        unit, allowed = self.problem.unit, self.problem.allowed
        return [op for op in consumers_of(self.problem, tensor) if allowed[unit[op], device]]

    def _send(self) -> None:
        """Send every tensor to all devices that have a reader but not its producer."""
        for (tensor, target), received in self.received.items():
            self.go_on()
            there = self.on.get((self.home(tensor), target))
            present = [received] if there is None else [received, there]
            for unit in remote_units(self.problem, tensor):
                if (unit, target) in self.on:
                    # on => received or there, as a clause.
                    self.model.add_bool_or(~self.on[unit, target], *present)
        for move, occurs in zip(self.moves, self.occurs, strict=True):
            received, here = (
                self.received[move.arrival],
                self.on[self.home(move.tensor), move.source],
            )
            # received and here <=> occurs
            self.model.add_bool_or(~received, ~here, occurs)
            self.model.add_implication(occurs, received)
            self.model.add_implication(occurs, here)
