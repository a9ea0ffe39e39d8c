"""A schedule beside its problem, with the names that errors about it need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Floats
from situate.data.topology import edge_tensors
from situate.errors import ScheduleError
from situate.schedule.items import Indices

if TYPE_CHECKING:
    from situate.data.problem import Problem
    from situate.schedule.arrays import ScheduleArrays

Index = int | np.integer[Any]

TOLERANCE = 1e-9
"""Relative; for sums of times. Times that are copies of one another must be equal."""


class Replay:
    """One schedule on one problem. Items are ops, then transfers, as `schedule.items` has them."""

    def __init__(self, schedule: ScheduleArrays, problem: Problem) -> None:
        self.schedule, self.problem = schedule, problem
        self.start = np.concatenate((schedule.start, schedule.transfer_start))
        self.end = np.concatenate((schedule.end, schedule.transfer_end))

    def edges(self) -> tuple[Indices, NDArray[np.int32]]:
        """Tensor and consumer's device of every edge, in the order of `Problem.consumers`."""
        p = self.problem
        tensor = edge_tensors(p)
        return tensor, self.schedule.placement[p.consumers]

    def item(self, item: Index) -> str:
        if item < self.problem.n:
            return self.op(item)
        k = int(item) - self.problem.n
        return self.move(int(self.schedule.tensor[k]) * self.problem.d + self.schedule.target[k])

    def move(self, key: Index) -> str:
        """The transfer of tensor `key // d` to device `key % d`."""
        tensor, target = divmod(int(key), self.problem.d)
        return f"the transfer of {self.tensor(tensor)} to {self.device(target)}"

    def op(self, op: Index) -> str:
        return f"op {self.problem.graph.ops[op].name!r}"

    def device(self, device: Index) -> str:
        return repr(self.problem.cluster.names[device])

    def tensor(self, tensor: Index) -> str:
        tensors = self.problem.graph.tensors
        if tensor < len(tensors):
            return repr(tensors[int(tensor)].name)
        return f"control edges of {self.op(self.problem.producer[tensor])}"


def fail(message: str) -> NoReturn:
    """Raise a ScheduleError with this message."""
    raise ScheduleError(f"schedule: {message}")


def close(a: Floats, b: Floats) -> NDArray[np.bool_]:
    """Equal up to the tolerance, elementwise."""
    return np.asarray(np.abs(a - b) <= TOLERANCE * np.maximum(np.abs(a), np.abs(b)))
