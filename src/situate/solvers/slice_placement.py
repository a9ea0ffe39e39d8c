"""Placements of a step whose batch is cut: slices on devices, parameters at homes, and what is left
beside one of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Ints, Order, Placement
from situate.data.problem import Problem
from situate.data.topology import op_devices
from situate.errors import SituateError
from situate.solvers.search import Search

NOWHERE = -1
"""The device of a unit that is not placed yet."""


def slice_of_units(problem: Problem) -> Ints:
    """(units,) the slice that each unit works on; -1 of those that run once a step.

    Raises:
        SituateError: the step takes its batch whole.
    """
    if all(op.slice is None for op in problem.graph.ops):
        raise SituateError(
            f"graph {problem.graph.name!r} takes its batch whole: give --slices, which cuts that "
            "of a network of the zoo or of a package.module:function"
        )
    found = np.full(problem.units, NOWHERE)
    for unit, op in zip(problem.unit.tolist(), problem.graph.ops, strict=True):
        if op.slice is not None:
            found[unit] = op.slice
    return found


def slice_seconds(slices: Ints, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """(slices, devices) seconds of all units of a slice, from those (units, devices) of units."""
    found = np.zeros((int(slices.max()) + 1, seconds.shape[1]))
    sliced = slices >= 0
    np.add.at(found, slices[sliced], seconds[sliced])
    return found


def shared_out(seconds: NDArray[np.float64]) -> Ints:
    """(slices,) the device of each slice: the longest first, each where it ends first (Graham, SIAM
    J. Applied Mathematics 17, 1969), and those of one size numbered by when they start.

    A slice may read what the one before it has written, as the running statistics of a batch norm:
    so a device must not run the last slices of all before another begins with the next.

    Args:
        seconds: (slices, devices) of a slice on a device.
    """
    busy, found = np.zeros(seconds.shape[1]), np.zeros(len(seconds), np.int64)
    for part in np.argsort(-seconds.mean(axis=1), kind="stable"):
        found[part] = np.argmin(busy + seconds[part])
        busy[found[part]] += seconds[part, found[part]]
    start = _starts(seconds, found)
    for size in np.unique(seconds, axis=0):
        (alike,) = np.nonzero((seconds == size).all(axis=1))
        found[alike] = found[alike[np.argsort(start[alike], kind="stable")]]
    return found


def _starts(seconds: NDArray[np.float64], device: Ints) -> NDArray[np.float64]:
    """(slices,) when each slice starts, where every device runs its own by number."""
    busy, found = np.zeros(seconds.shape[1]), np.zeros(len(seconds))
    for part, on in enumerate(device):
        found[part] = busy[on]
        busy[on] += seconds[part, on]
    return found


def homes(
    problem: Problem,
    slices: Ints,
    devices: Ints,
    weight: NDArray[np.float64],
    load: NDArray[np.float64],
) -> Ints:
    """(units,) the device of each unit that holds parameters or buffers: the largest first, each
    to the device with the least load that has room for it; -1 of all others.

    Args:
        weight: (units, devices) that a unit adds to the load of a device.
        load: (devices,) before.
    """
    held = np.where(slices < 0, problem.unit_persistent, 0)
    room = problem.capacity[devices].astype(np.float64)
    home, load = np.full(problem.units, NOWHERE), load.copy()
    for unit in np.argsort(-held, kind="stable")[: np.count_nonzero(held)].tolist():
        after = load + weight[unit]
        after[(room < held[unit]) | ~problem.allowed[unit, devices]] = np.inf
        place = int(np.argmin(after))
        if np.isfinite(after[place]):
            home[unit] = devices[place]
            load[place] = after[place]
            room[place] -= held[unit]
    return home


def completed(problem: Problem, of_unit: Ints) -> Placement:
    """Placement (n,) with every unit that is not placed, -1, beside what it exchanges most bytes
    with, see `beside`, or where it may run."""
    of_unit = beside(problem, of_unit)
    rest = (of_unit < 0) | ~problem.allowed[np.arange(problem.units), of_unit]
    of_unit[rest] = problem.allowed[rest].argmax(axis=1)
    return op_devices(problem, of_unit)


def beside(problem: Problem, where: Ints) -> Ints:
    """(units,) where each unit is, and one that is nowhere, -1, where that is with which it
    exchanges most bytes: before its reader, if what it makes is as large as what it reads, as the
    sum of two gradients is, else behind what it reads.

    Args:
        where: (units,) devices, or places of any other kind.
    """
    where = where.copy()
    read, made = _neighbours(problem)
    for op in reversed(problem.graph.order):
        _place(problem, where, op, made[op], least=max(read[op], default=(0, 0))[0])
    for op in problem.graph.order:
        _place(problem, where, op, read[op])
    for op in reversed(problem.graph.order):
        _place(problem, where, op, made[op])
    return where


def offer_slices(search: Search, slices: Ints, device: Ints, home: Ints) -> None:
    """Offer a plan in the program's order, slice after slice, and with the slices side by side.

    Args:
        slices: (units,) see `slice_of_units`.
        device: (slices,) of each slice.
        home: (units,) see `homes`.
    """
    problem = search.problem
    placement = completed(problem, np.where(slices < 0, home, device[slices]))
    for order in (np.array(problem.graph.program_order, np.int32), side_by_side(problem)):
        search.offer(placement, order)


def side_by_side(problem: Problem) -> Order:
    """The order (n,) in which all slices go through the model together: the first op of every
    slice, then the second; what runs once follows what it reads.

    A device with several slices then waits less for parameters of others, and holds more
    activations, than slice after slice.
    """
    ops, place = problem.graph.ops, np.zeros(problem.n)
    seen = dict[int | None, int]()
    read, _ = _neighbours(problem)
    for op in problem.graph.program_order:
        part = ops[op].slice
        if part is None:
            place[op] = max((place[other] for _, other in read[op]), default=-1.0)
        else:
            place[op] = seen[part] = seen.get(part, -1) + 1
    order = np.array(problem.graph.program_order, np.int32)
    return order[np.argsort(place[order], kind="stable")]


Neighbours = list[list[tuple[int, int]]]
"""By op, the tensors on one side of it: their bytes, and the op at the other end."""


def _neighbours(problem: Problem) -> tuple[Neighbours, Neighbours]:
    """The tensors that every op reads, and those that it makes for each reader."""
    read: Neighbours = [[] for _ in range(problem.n)]
    made: Neighbours = [[] for _ in range(problem.n)]
    for tensor in problem.graph.tensors:
        for reader in tensor.consumers:
            read[reader].append((tensor.size, tensor.producer))
            made[tensor.producer].append((tensor.size, reader))
    return read, made


def _place(
    problem: Problem,
    of_unit: Ints,
    op: int,
    neighbours: Sequence[tuple[int, int]],
    least: int = 0,
) -> None:
    """Place an op that is nowhere beside the neighbour by the largest tensor of `least` bytes."""
    unit = problem.unit[op]
    if of_unit[unit] >= 0:
        return
    placed = [
        (size, -other)
        for size, other in neighbours
        if size >= least and of_unit[problem.unit[other]] >= 0
    ]
    if placed:
        _, other = max(placed)
        of_unit[unit] = of_unit[problem.unit[-other]]
