"""`topological`: fill the devices in order, each up to its share of the bytes.

The analogue for ops of accelerate's `device_map="auto"`, which fills devices with modules.
"""

from __future__ import annotations

import numpy as np

from situate import _core
from situate.data.arrays import Floats, Order, Placement
from situate.data.core_problem import core_problem
from situate.data.problem import Problem
from situate.data.problem_arrays import UNLIMITED
from situate.data.topology import accelerators, edge_producers, op_devices, places
from situate.solvers.late import Lateness
from situate.solvers.search import Search


def run(search: Search) -> None:
    """Offer the fill by equal shares; if that does not fit, also the fill by capacity."""
    problem = search.problem
    order = np.array(problem.graph.order, np.int32)
    candidate = search.offer(fill(problem, core=search.simulator.core), order)
    capacity = problem.capacity[accelerators(problem)]
    unequal = capacity.min() < capacity.max() < UNLIMITED
    if unequal and not candidate.feasible and not search.budget.out_of_evaluations():
        search.offer(fill(problem, by_capacity=True, core=search.simulator.core), order)


def fill(
    problem: Problem, by_capacity: bool = False, core: _core.problem.Problem | None = None
) -> Placement:
    """Placement (n,): units in topological order go to the first device with room.

    Accelerators come first. Each takes its share of the persistent bytes plus the largest unit, up
    to its capacity. The last accelerator is limited only by its capacity, and CPUs take the rest.

    Args:
        problem: of n ops.
        by_capacity: True for shares in proportion to capacity; otherwise shares are equal.
        core: the core's copy of the problem, if there is one.
    """
    weight = _bytes_of_units(problem)
    devices = accelerators(problem)
    room = problem.capacity.astype(np.float64)
    # (accelerators,) or one number: each accelerator's share of the bytes.
    part = room[devices] / room[devices].sum() if by_capacity else 1 / len(devices)
    share = np.broadcast_to(weight.sum() * part + weight.max(), len(devices))[:-1]
    # The last accelerator has no share: it takes the rest, up to its capacity.
    room[devices[:-1]] = np.minimum(room[devices[:-1]], share)
    rest = [d for d in range(problem.d) if d not in devices]
    turn = np.array([*devices, *rest], np.int32)
    core = core or core_problem(problem)
    ops = _order_of_use(problem, core)
    return op_devices(problem, _core.search.fill_in_turn(core, ops, weight, room, turn))


def _bytes_of_units(problem: Problem) -> Floats:
    """(units,) persistent bytes; output bytes if nothing in the graph is persistent."""
    weight = problem.unit_persistent.astype(np.float64)
    if not weight.any():
        np.add.at(weight, problem.unit[problem.producer], problem.size.astype(np.float64))
    return weight


def _order_of_use(problem: Problem, core: _core.problem.Problem) -> Order:
    """(n,) the topological order in which parameters, and ops that depend on parameters alone, come
    just before their first readers."""
    place, late = places(problem.graph.order).astype(np.float64), Lateness(problem, core)
    own_use = late.first_use(place)
    # (n,) the place of the first reader of an op's output; infinite without readers.
    first_use = np.full(problem.n, np.inf)
    readers = edge_producers(problem)
    np.minimum.at(first_use, readers, own_use[problem.consumers])
    early = late.without_data.copy()
    # Ops without inputs: parameters and graph inputs.
    reads = np.zeros(problem.n, np.bool_)
    reads[problem.consumers] = True
    early |= ~reads
    # Half a place before the reader, so that the op directly precedes it.
    key = np.where(early & np.isfinite(first_use), first_use - 0.5, place)
    return np.argsort(key, kind="stable").astype(np.int32)
