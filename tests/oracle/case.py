"""A problem and its decisions, in the words of docs/execution-model.md."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from situate.data.problem import Problem


@dataclass(frozen=True)
class Move:
    """A transfer that has to be made: its tensor, its devices, its duration and its urgency."""

    tensor: int
    source: int
    target: int
    channel: int
    seconds: float
    priority: float

    @property
    def key(self) -> tuple[int, int]:
        return self.tensor, self.target


class Case:
    """Everything the decoders ask for, as plain lists."""

    def __init__(
        self,
        problem: Problem,
        placement: ArrayLike,
        priority: ArrayLike,
        transfer_priority: ArrayLike | None = None,
    ) -> None:
        self.problem = problem
        self.device: list[int] = np.asarray(placement).tolist()
        self.priority: list[float] = np.asarray(priority, np.float32).tolist()
        self.ops = range(problem.n)
        self.devices = range(problem.d)
        self.tensors = range(len(problem.size))
        self.seconds = [float(problem.seconds[j, self.device[j]]) for j in self.ops]
        self.producer: list[int] = problem.producer.tolist()
        starts, flat = problem.consumer_start.tolist(), problem.consumers.tolist()
        self.consumers = [flat[starts[t] : starts[t + 1]] for t in self.tensors]
        self.produced = [[t for t in self.tensors if self.producer[t] == j] for j in self.ops]
        self.inputs: list[list[int]] = [[] for _ in self.ops]
        for t in self.tensors:
            for consumer in self.consumers[t]:
                self.inputs[consumer].append(t)
        given = None if transfer_priority is None else np.asarray(transfer_priority, np.float32)
        self.moves = [
            self._move(t, target, given)
            for t in self.tensors
            if not self.is_signal(t)
            for target in self.targets(t)
        ]

    def is_signal(self, tensor: int) -> bool:
        """True of size zero and without a transfer time of its own, where there are signals."""
        own = self.problem.transfer_seconds[tensor]
        empty = self.problem.size[tensor] == 0 and np.isnan(own)
        return bool(empty and self.problem.rules.signals)

    def home(self, tensor: int) -> int:
        """The device of the tensor's producer."""
        return self.device[self.producer[tensor]]

    def targets(self, tensor: int) -> list[int]:
        """Every other device that has a consumer of the tensor."""
        return sorted({self.device[c] for c in self.consumers[tensor]} - {self.home(tensor)})

    def consumers_on(self, tensor: int, device: int) -> list[int]:
        return [c for c in self.consumers[tensor] if self.device[c] == device]

    def moves_of(self, op: int) -> list[Move]:
        """The transfers that an op requests when it ends."""
        return [move for move in self.moves if self.producer[move.tensor] == op]

    def _move(self, tensor: int, target: int, given: np.ndarray | None) -> Move:
        source = self.home(tensor)
        return Move(
            tensor,
            source,
            target,
            int(self.problem.channel[source, target]),
            self.problem.transfer_time(tensor, source, target),
            max(self.priority[c] for c in self.consumers_on(tensor, target))
            if given is None
            else float(given[tensor, target]),
        )
