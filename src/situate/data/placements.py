"""Checks of placements and orders from users against their problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.errors import SituateError, nearest
from situate.validation import Where


def integers(values: object, shape: tuple[int, ...], noun: str) -> NDArray[Any]:
    """`values` as an array of integers of that shape.

    Raises:
        SituateError: it is not; the line begins with `noun`.
    """
    try:
        array = np.asarray(values)
    except (RuntimeError, TypeError, ValueError) as error:
        raise SituateError(f"{noun}: must be integers of shape {shape}: {error}") from None
    if array.dtype.kind not in "iu" or array.shape != shape:
        raise SituateError(
            f"{noun}: must be integers of shape {shape}, got {array.dtype} of shape {array.shape}"
        )
    return array


def rows(values: Any, width: int, noun: str) -> NDArray[Any]:
    """`values` as integers (k, width).

    Raises:
        SituateError: it is not; the line begins with `noun`.
    """
    try:
        count = len(values)
    except TypeError:
        count = 0
    return integers(values, (count, width), noun)


def check_devices(problem: Problem, placements: NDArray[Any], where: Where) -> NDArray[np.int32]:
    """A copy of placements (k, n) of integers as 32-bit ones.

    Raises:
        SituateError: a device that there is not; names the row and the op.
    """
    # Two reductions are faster than a mask (k, n), which only an error needs.
    if placements.size and not (placements.min() >= 0 and placements.max() < problem.d):
        row, op = np.argwhere((placements < 0) | (placements >= problem.d))[0]
        raise SituateError(
            f"{where(row)}op {problem.graph.ops[op].name!r} is placed on device "
            f"{placements[row, op]}; there are devices 0 to {problem.d - 1}"
        )
    return placements.astype(np.int32, order="C")


def check_order(problem: Problem, order: object) -> NDArray[np.int32]:
    """An order (n,) of op indices as 32-bit integers.

    Raises:
        SituateError: an op is missing; the message names it.
    """
    places = integers(order, (problem.n,), "order")
    # n indices that miss none are a permutation, so repeated ones need no check of their own.
    is_present = np.zeros(problem.n, np.bool_)
    is_present[places[(places >= 0) & (places < problem.n)]] = True
    if not is_present.all():
        missing = int(np.argmin(is_present))
        raise SituateError(
            f"order: must have each of the op indices 0 to {problem.n - 1} once; it lacks "
            f"{missing}, op {problem.graph.ops[missing].name!r}"
        )
    return np.ascontiguousarray(places, np.int32)


def indices_of(problem: Problem, places: Mapping[str, str]) -> NDArray[np.int32]:
    """The placement (n,) from a mapping of op names to device names.

    Raises:
        SituateError: a missing op, or an unknown op or device.
    """
    devices = {name: device for device, name in enumerate(problem.cluster.names)}
    names = [op.name for op in problem.graph.ops]
    if unknown := places.keys() - set(names):
        op = min(unknown, key=str)
        raise SituateError(f"placement: unknown op {op!r}{nearest(str(op), names)}")
    for op in names:
        if op not in places:
            raise SituateError(f"placement: op {op!r} has no device")
        device = places[op]
        if not isinstance(device, str) or device not in devices:
            hint = nearest(str(device), devices)
            raise SituateError(f"placement: op {op!r} is on unknown device {device!r}{hint}")
    return np.array([devices[places[op]] for op in names], np.int32)


class Restrictions:
    """The allowed devices of a problem's ops, as arrays for checking many placements at once.

    Args:
        allowed: (units, d) true where a unit may run; by default `Problem.allowed`.
    """

    def __init__(self, problem: Problem, allowed: NDArray[np.bool_] | None = None) -> None:
        self._problem = problem
        self._allowed = problem.allowed if allowed is None else allowed
        # (units,) the first op of each unit; its other members must be on the same device.
        first = np.unique(problem.unit, return_index=True)[1]
        everywhere = np.asarray(self._allowed.all(axis=1))
        self._restricted = np.flatnonzero(~everywhere[problem.unit])
        # Flat indices into `allowed` (units, d), less the device, for one `take` a check.
        self._row = problem.unit[self._restricted].astype(np.int64) * problem.d
        self._members = np.flatnonzero(first[problem.unit] != np.arange(problem.n))
        self._first = first[problem.unit[self._members]]

    def check(self, placements: NDArray[Any], where: Where) -> NDArray[np.int32]:
        """A copy of placements (k, n) of integers as 32-bit ones.

        Raises:
            SituateError: a device that there is not or that an op may not run on, a group on
                several devices; names the row and the op.
        """
        devices = check_devices(self._problem, placements, where)
        self._check_allowed(devices, where)
        self._check_groups(devices, where)
        return devices

    def _check_allowed(self, devices: NDArray[np.int32], where: Where) -> None:
        # (placements, restricted ops) from a flat table, in which each op's row begins at `_row`.
        may = np.asarray(self._allowed.take(self._row + devices[:, self._restricted]))
        if not may.all():
            row, column = np.argwhere(~may)[0]
            op = int(self._restricted[column])
            names = self._problem.cluster.names
            others = [names[d] for d in np.flatnonzero(self._allowed[self._problem.unit[op]])]
            raise SituateError(
                f"{where(row)}op {self._problem.graph.ops[op].name!r} is placed on "
                f"{names[devices[row, op]]!r}, where it may not run; it may on "
                f"{', '.join(map(repr, others[:8]))}{', ...' if len(others) > 8 else ''}"
            )

    def _check_groups(self, devices: NDArray[np.int32], where: Where) -> None:
        together = np.asarray(devices[:, self._members] == devices[:, self._first])
        if not together.all():
            row, column = np.argwhere(~together)[0]
            first, other = int(self._first[column]), int(self._members[column])
            ops, names = self._problem.graph.ops, self._problem.cluster.names
            raise SituateError(
                f"{where(row)}group {ops[other].group!r} is split: op {ops[first].name!r} is "
                f"placed on {names[devices[row, first]]!r} and op {ops[other].name!r} on "
                f"{names[devices[row, other]]!r}"
            )
