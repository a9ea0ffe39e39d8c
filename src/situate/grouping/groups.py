"""Groups of ops that a learner places as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from situate.data.placements import rows
from situate.data.problem import Problem
from situate.data.topology import places

Weights = Literal["seconds", "work", "bytes"]
"""The weights of ops in a rule of grouping: seconds on the problem's devices; work, which is
derived from FLOPs and memory traffic; or bytes of tensors."""


@dataclass(frozen=True, eq=False)
class Groups:
    """A partition of a problem's ops, in the order of their first op in `Graph.order`.

    Attributes:
        of_op: (n,) the group of each op.
        allowed: (g, d) devices on which every op of the group may and can run, at least one.
        weights: of ops in the rule; None if it weighed none.
    """

    of_op: NDArray[np.int32]
    allowed: NDArray[np.bool_]
    weights: Weights | None = None

    @property
    def told_costs(self) -> bool:
        """True if the rule used the costs of ops."""
        return self.weights == "seconds"

    @property
    def reads_flops(self) -> bool:
        """True if the rule used FLOPs and memory traffic of ops."""
        return self.weights == "work"

    def __len__(self) -> int:
        return len(self.allowed)

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """(g,) an op of each group."""
        return np.unique(self.of_op, return_index=True)[1]

    def expand(self, devices: NDArray[np.int32]) -> NDArray[np.int32]:
        """Placements (k, n) of ops from devices (k, g) of groups.

        Raises:
            SituateError: not integers of that shape.
        """
        devices = rows(devices, len(self), "devices of groups")
        return np.ascontiguousarray(devices.take(self.of_op, axis=1), np.int32)

    def devices(self, placements: NDArray[np.int32]) -> NDArray[np.int32]:
        """Devices (k, g) of groups from expanded placements (k, n).

        Raises:
            SituateError: not integers of that shape.
        """
        placements = rows(placements, len(self.of_op), "placements")
        return np.ascontiguousarray(placements.take(self.first, axis=1), np.int32)

    def majority(
        self, placement: NDArray[np.int32], weight: NDArray[np.float64]
    ) -> NDArray[np.int32]:
        """(g,) by group, of the devices that it may run on the one with most weight of its ops.

        Args:
            placement: (n,) of ops.
            weight: (n,) of ops.
        """
        # (g, d): -inf keeps argmax away from devices that the group may not use, even where no op's
        # weight counts. `np.add.at` adds every op, also those with equal indices.
        total = np.where(self.allowed, 0.0, -np.inf)
        np.add.at(total, (self.of_op, placement), weight)
        return np.asarray(total.argmax(axis=1), np.int32)


def make_groups(problem: Problem, label_of_unit: Sequence[int] | NDArray[np.int64]) -> Groups:
    """Groups of the units with equal labels (units,), as far as their devices agree.

    Units of a label are split if no device could run all of them, because of kind, pins or memory.
    Each then joins the first part of its label with which it shares a device.

    Raises:
        ValueError: not one label for every unit.
    """
    labels = np.asarray(label_of_unit)
    if labels.shape != (problem.units,):
        raise ValueError(f"labels: one for each of {problem.units} units, got {labels.shape}")
    part = _split(problem, np.unique(labels, return_inverse=True)[1])
    # rank (n,): place of every op in the graph's order.
    rank = places(problem.graph.order)
    parts = int(part.max()) + 1
    # first (parts,): rank of the part's earliest op, by which the parts are numbered anew.
    first = np.full(parts, problem.n)
    np.minimum.at(first, part[problem.unit], rank)
    number = np.empty(parts, np.int64)
    number[np.argsort(first)] = np.arange(parts)
    part = number[part]
    return Groups(part[problem.unit].astype(np.int32), _devices(problem, part))


def _devices(problem: Problem, part: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(parts, d) devices that may run all units of a part, and hold them together."""
    parts = int(part.max()) + 1
    # Per unit to per part: bytes add up (parts,), permissions must hold for all units (parts, d).
    persistent = np.zeros(parts, np.int64)
    np.add.at(persistent, part, problem.unit_persistent)
    allowed = np.ones((parts, problem.d), np.bool_)
    np.logical_and.at(allowed, part, problem.allowed)
    return allowed & (persistent[:, None] <= problem.capacity)


def _split(problem: Problem, label: NDArray[np.int64]) -> NDArray[np.int64]:
    """Parts (units,) from labels: first the labels that some device can hold, then the parts of the
    others."""
    # whole (units,): the unit's label has a device for all its units. Those units keep the label as
    # their part; the others are dealt out one by one.
    whole = np.asarray(_devices(problem, label).any(axis=1))[label]
    part = np.where(whole, label, -1)
    parts = _Parts(problem, int(label.max()) + 1)
    for unit in np.flatnonzero(~whole).tolist():
        part[unit] = parts.join(unit, int(label[unit]))
    # Labels that were split leave numbers unused: renumber densely from 0.
    return np.unique(part, return_inverse=True)[1]


class _Parts:
    """The parts of labels that no device can hold, as units join them; numbered from `first`."""

    def __init__(self, problem: Problem, first: int) -> None:
        self.problem = problem
        self.first = first
        self.allowed: list[NDArray[np.bool_]] = []
        self.bytes: list[int] = []
        self.of_label: dict[int, list[int]] = {}

    def join(self, unit: int, label: int) -> int:
        """The number of the first part of the label that a device can hold with the unit."""
        parts = self.of_label.setdefault(label, [])
        for part in parts:
            shared = self._shared(unit, part)
            if shared.any():
                self.allowed[part] = shared
                self.bytes[part] += int(self.problem.unit_persistent[unit])
                return self.first + part
        self.allowed.append(self.problem.allowed[unit].copy())
        self.bytes.append(int(self.problem.unit_persistent[unit]))
        parts.append(len(self.allowed) - 1)
        return self.first + parts[-1]

    def _shared(self, unit: int, part: int) -> NDArray[np.bool_]:
        fits = self.bytes[part] + int(self.problem.unit_persistent[unit]) <= self.problem.capacity
        return np.asarray(self.allowed[part] & self.problem.allowed[unit] & fits)
