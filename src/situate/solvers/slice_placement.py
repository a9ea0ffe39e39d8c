"""Placements of slices, of the replicas that they read, and of the sums of their gradients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Bools, Ints, Order, Placement
from situate.data.problem import Problem
from situate.data.slices import Slices
from situate.data.topology import edge_producers, edge_tensors, op_devices
from situate.errors import SituateError
from situate.solvers.search import Search

NOWHERE = -1
"""The device of a unit that is not placed yet."""


Neighbours = dict[int, list[tuple[int, int]]]
"""For each op, (bytes, other op) of the tensors that it reads, or that it writes."""


def replica_seconds(slices: Slices, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """(replicas, devices) total seconds of the slices that read each replica.

    Args:
        seconds: (slices, devices) of each slice.
    """
    of_slice = np.array(slices.replica)
    total = np.zeros((int(of_slice.max()) + 1, seconds.shape[1]))
    np.add.at(total, of_slice, seconds)
    return total


def replica_devices(problem: Problem, device: Ints) -> Ints:
    """(units,) the device that runs most of the slices which read a unit's replica; -1 for units
    without a replica.

    Args:
        device: (slices,) of each slice.
    """
    of_unit = np.full(problem.units, NOWHERE)
    if (slices := problem.graph.slices) is None or not slices.replicas:
        return of_unit
    of_slice = np.array(slices.replica)
    most = [int(np.bincount(device[of_slice == r]).argmax()) for r in range(len(slices.replicas))]
    for unit, op in zip(problem.unit.tolist(), problem.graph.ops, strict=True):
        if op.replica is not None:
            of_unit[unit] = most[op.replica]
    return of_unit


def meeting_devices(problem: Problem, devices: Ints) -> Ints:
    """(units,) the device of each unit whose output updates several replicas, such as a sum of
    gradients; -1 for other units.

    The largest unit comes first, and each goes to the device with the fewest bytes of such units.
    So every device adds up a part of the gradients and sends it to all others, as an all-reduce
    does by a reduce-scatter and an all-gather.
    """
    of_unit, load = np.full(problem.units, NOWHERE), np.zeros(len(devices))
    for size, unit in sorted(_meetings(problem), key=lambda meeting: -meeting[0]):
        after = np.where(problem.allowed[unit, devices], load + size, np.inf)
        place = int(np.argmin(after))
        if np.isfinite(after[place]):
            of_unit[unit], load[place] = devices[place], after[place]
    return of_unit


def _meetings(problem: Problem) -> list[tuple[int, int]]:
    """(bytes, producing unit) of each tensor that updates several replicas."""
    ops = problem.graph.ops
    return [
        (tensor.size, int(problem.unit[tensor.producer]))
        for tensor in problem.graph.tensors
        if len({ops[op].replica for op in tensor.consumers if ops[op].phase == "update"}) > 1
    ]


def slice_of_units(problem: Problem) -> Ints:
    """(units,) the slice of each unit; -1 for units that run once a step.

    Raises:
        SituateError: the step does not slice its batch.
    """
    if all(op.slice is None for op in problem.graph.ops):
        raise SituateError(
            f"graph {problem.graph.name!r} takes its batch whole: give --slices, which cuts that "
            "of a network of the zoo or of a package.module:function"
        )
    of_unit = np.full(problem.units, NOWHERE)
    for unit, op in zip(problem.unit.tolist(), problem.graph.ops, strict=True):
        if op.slice is not None:
            of_unit[unit] = op.slice
    return of_unit


def slice_seconds(slices: Ints, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """(slices, devices) total seconds of each slice, from the seconds (units, devices) of units."""
    total = np.zeros((int(slices.max()) + 1, seconds.shape[1]))
    sliced = slices >= 0
    np.add.at(total, slices[sliced], seconds[sliced])
    return total


def shared_out(seconds: NDArray[np.float64]) -> Ints:
    """(slices,) the device of each slice: the longest first, each where it ends first (Graham, SIAM
    J. Applied Mathematics 17, 1969). Slices of equal size are numbered by their start.

    A slice may read state from the one before it, such as the running statistics of a batch norm.
    So the slices must start in order across devices.

    Args:
        seconds: (slices, devices) of each slice on each device.
    """
    busy, device = np.zeros(seconds.shape[1]), np.zeros(len(seconds), np.int64)
    for part in np.argsort(-seconds.mean(axis=1), kind="stable"):
        device[part] = np.argmin(busy + seconds[part])
        busy[device[part]] += seconds[part, device[part]]
    start = _starts(seconds, device)
    for size in np.unique(seconds, axis=0):
        (alike,) = np.nonzero((seconds == size).all(axis=1))
        # Slices of one size are interchangeable, so the set of their devices stays as it is.
        device[alike] = device[alike[np.argsort(start[alike], kind="stable")]]
    return device


def _starts(seconds: NDArray[np.float64], device: Ints) -> NDArray[np.float64]:
    """(slices,) start of each slice if every device runs its slices by number."""
    busy, start = np.zeros(seconds.shape[1]), np.zeros(len(seconds))
    for part, on in enumerate(device):
        start[part] = busy[on]
        busy[on] += seconds[part, on]
    return start


def homes(
    problem: Problem,
    slices: Ints,
    device: Ints,
    devices: Ints,
    weight: NDArray[np.float64],
    load: NDArray[np.float64],
) -> Ints:
    """(units,) the device of each unit with persistent bytes; -1 for other units.

    Units of replicas come first, each with its slices if there is room. The others follow by
    decreasing size, each to the least loaded device with room for it.

    Args:
        device: (slices,) of each slice, an index into `devices`.
        weight: (units, devices) load that a unit adds to a device.
        load: (devices,) initial load.
    """
    persistent = np.where(slices < 0, problem.unit_persistent, 0)
    room = problem.capacity[devices].astype(np.float64)
    own = replica_devices(problem, device)
    home, load = np.full(problem.units, NOWHERE), load.copy()
    # The last key counts first, and False sorts before True.
    for unit in np.lexsort((-persistent, own < 0)).tolist():
        if not persistent[unit]:
            continue
        after = load + weight[unit]
        after[(room < persistent[unit]) | ~problem.allowed[unit, devices]] = np.inf
        place = own[unit] if own[unit] >= 0 and np.isfinite(after[own[unit]]) else after.argmin()
        if np.isfinite(after[place]):
            home[unit] = devices[place]
            load[place] = after[place]
            room[place] -= persistent[unit]
    return home


def completed(problem: Problem, of_unit: Ints) -> Placement:
    """Placement (n,) in which unassigned units (-1) follow their neighbours, see `beside`, or go to
    a device that may run them."""
    of_unit = beside(problem, of_unit)
    rest = (of_unit < 0) | ~problem.allowed[np.arange(problem.units), of_unit]
    of_unit[rest] = problem.allowed[rest].argmax(axis=1)
    return op_devices(problem, of_unit)


def beside(problem: Problem, where: Ints) -> Ints:
    """(units,) each unit's device; unassigned units (-1) follow the unit they exchange the most
    bytes with.

    A unit follows a reader if its output is at least as large as its inputs, such as a sum of two
    gradients. Otherwise it follows an input.

    Args:
        where: (units,) devices, or places of any other kind.
    """
    where = where.copy()
    nowhere = where[problem.unit] < 0
    inputs, outputs = _neighbours(problem, nowhere)
    along = [op for op in problem.graph.order if nowhere[op]]
    for op in reversed(along):
        _place(problem, where, op, outputs[op], least=max(inputs[op], default=(0, 0))[0])
    for op in along:
        _place(problem, where, op, inputs[op])
    for op in reversed(along):
        _place(problem, where, op, outputs[op])
    return where


def offer_slices(search: Search, slices: Ints, device: Ints, home: Ints) -> None:
    """Offer a plan in program order, slice after slice, and one with the slices side by side.

    Args:
        slices: (units,) see `slice_of_units`.
        device: (slices,) of each slice.
        home: (units,) see `homes`.
    """
    problem = search.problem
    of_unit = np.where(slices < 0, home, device[slices])
    for others in (replica_devices(problem, device), meeting_devices(problem, np.unique(device))):
        of_unit = np.where((of_unit < 0) & (others >= 0), others, of_unit)
    placement = completed(problem, of_unit)
    for order in (np.array(problem.graph.program_order, np.int32), side_by_side(problem)):
        search.offer(placement, order)


def side_by_side(problem: Problem) -> Order:
    """The order (n,) in which all slices go through the model together: the first op of every
    slice, then the second. An op that runs once follows its inputs.

    A device with several slices then waits less for parameters of other devices than slice after
    slice, but holds more activations.
    """
    order = np.array(problem.graph.program_order, np.int32)
    slices = np.array([NOWHERE if op.slice is None else op.slice for op in problem.graph.ops])
    place = _places_in_slices(slices, order)
    inputs, _ = _neighbours(problem, slices < 0)
    for op in order[slices[order] < 0].tolist():
        # Behind its last input, since a stable sort keeps program order among equals.
        place[op] = max((place[other] for _, other in inputs[op]), default=-1)
    return order[np.argsort(place[order], kind="stable")]


def _places_in_slices(slices: Ints, order: Order) -> Ints:
    """(n,) the position of each op within its slice, in the order (n,)."""
    place = np.zeros(len(slices), np.int64)
    # Ops without a slice come first, then slice after slice.
    ops = order[np.argsort(slices[order], kind="stable")]
    # Where each op's slice begins among the sorted ones.
    begin = np.searchsorted(slices[ops], slices[ops])
    place[ops] = np.arange(len(ops)) - begin
    return place


def _neighbours(problem: Problem, selected: Bools) -> tuple[Neighbours, Neighbours]:
    """Input and output neighbours of the selected ops (n,); one entry per reader of an output."""
    data = edge_tensors(problem) < len(problem.graph.tensors)  # higher numbers are control edges
    size = problem.size[edge_tensors(problem)[data]]
    maker, reader = edge_producers(problem)[data], problem.consumers[data]
    return _ends(reader, size, maker, selected), _ends(maker, size, reader, selected)


def _ends(ops: Ints | Order, size: Ints, others: Ints | Order, selected: Bools) -> Neighbours:
    """The other ends of the edges (edges,) at the selected ops (n,)."""
    neighbours: Neighbours = {op: [] for op in np.flatnonzero(selected).tolist()}
    on = selected[ops]
    edges = zip(ops[on].tolist(), size[on].tolist(), others[on].tolist(), strict=True)
    for op, length, other in edges:
        neighbours[op].append((length, other))
    return neighbours


def _place(
    problem: Problem,
    of_unit: Ints,
    op: int,
    neighbours: Sequence[tuple[int, int]],
    least: int = 0,
) -> None:
    """Place an unassigned op with the neighbour that shares its largest tensor of at least `least`
    bytes."""
    unit = problem.unit[op]
    if of_unit[unit] >= 0:
        return
    anchors = [
        # Ties go to the op of the lowest number.
        (size, -other)
        for size, other in neighbours
        if size >= least and of_unit[problem.unit[other]] >= 0
    ]
    if anchors:
        _, other = max(anchors)
        of_unit[unit] = of_unit[problem.unit[-other]]
