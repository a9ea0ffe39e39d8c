"""`topological`: fill the devices in order, each up to its share of the bytes.

What accelerate's `device_map="auto"` does with modules, done with ops.
"""

from __future__ import annotations

import numpy as np

from situate import _core
from situate.data.arrays import Floats, Order, Placement
from situate.data.core_problem import core_problem
from situate.data.problem import UNLIMITED, Problem
from situate.data.topology import accelerators, edge_producers, op_devices, places
from situate.solvers.late import Lateness
from situate.solvers.search import Search


def run(search: Search) -> None:
    """Offer the fill by equal shares; where that does not fit, the one by capacity too."""
    problem = search.problem
    order = np.array(problem.graph.order, np.int32)
    candidate = search.offer(fill(problem, core=search.simulator.core), order)
    capacity = problem.capacity[accelerators(problem)]
    unequal = capacity.min() < capacity.max() < UNLIMITED
    if unequal and not candidate.feasible and not search.evaluated():
        search.offer(fill(problem, by_capacity=True, core=search.simulator.core), order)


def fill(
    problem: Problem, by_capacity: bool = False, core: _core.Problem | None = None
) -> Placement:
    """Placement (n,): units in topological order go to the first device with room.

    Accelerators come first and take at most an equal share of the persistent bytes, or one in
    proportion to their capacity, and the largest unit more, or their capacity if that is less; the
    last one takes what it holds, and CPUs what is left over.

    Args:
        problem: whose units are placed.
        by_capacity: the share is one in proportion to capacity.
        core: the problem as the core holds it, where that is known.
    """
    weight = _bytes_of_units(problem)
    devices = accelerators(problem)
    room = problem.capacity.astype(np.float64)
    # (accelerators,) or one number: the share of the bytes that each may take.
    part = room[devices] / room[devices].sum() if by_capacity else 1 / len(devices)
    share = np.broadcast_to(weight.sum() * part + weight.max(), len(devices))[:-1]
    # The last accelerator has no share: it takes what the others leave, up to its capacity.
    room[devices[:-1]] = np.minimum(room[devices[:-1]], share)
    rest = [d for d in range(problem.d) if d not in devices]
    turn = np.array([*devices, *rest], np.int32)
    core = core or core_problem(problem)
    ops = _order_of_use(problem, core)
    return op_devices(problem, _core.fill_in_turn(core, ops, weight, room, turn))


def _bytes_of_units(problem: Problem) -> Floats:
    """Persistent bytes (units,); outputs where nothing in the graph is persistent."""
    weight = problem.unit_persistent.astype(np.float64)
    if not weight.any():
        np.add.at(weight, problem.unit[problem.producer], problem.size.astype(np.float64))
    return weight


def _order_of_use(problem: Problem, core: _core.Problem) -> Order:
    """(n,) the topological order in which a parameter, and what is made of parameters alone, comes
    just before its first reader."""
    place, late = places(problem.graph.order).astype(np.float64), Lateness(problem, core)
    own_use = late.first_use(place)
    # (n,) the first place at which an op's output is read; infinite where nothing reads it.
    first_use = np.full(problem.n, np.inf)
    readers = edge_producers(problem)
    np.minimum.at(first_use, readers, own_use[problem.consumers])
    early = late.without_data.copy()
    # Ops that read nothing: parameters and inputs.
    reads = np.zeros(problem.n, np.bool_)
    reads[problem.consumers] = True
    early |= ~reads
    # Half a place before the reader, so that it stands directly before it and behind all else.
    key = np.where(early & np.isfinite(first_use), first_use - 0.5, place)
    return np.argsort(key, kind="stable").astype(np.int32)
