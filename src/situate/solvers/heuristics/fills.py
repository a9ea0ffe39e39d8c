"""Fills: `topological` and Baechi's `m_topo` fill devices one by one in topological order.

`topological` is the analogue for ops of accelerate's `device_map="auto"`, which fills devices with
modules.
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


def topological(search: Search) -> None:
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
    weight = _fill_weights(problem)
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


def _fill_weights(problem: Problem) -> Floats:
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


def m_topo(search: Search) -> None:
    """m-TOPO (Jeon et al., Baechi, SoCC 2020): one plan, with ops in the graph's order."""
    search.offer(_fill_once(search.problem), np.array(search.problem.graph.order, np.int32))


def _fill_once(problem: Problem) -> Placement:
    """Placement (n,) that fills one accelerator after the other with units in the order of their
    first ops.

    An accelerator takes its share of all bytes plus the bytes of the largest unit, up to its
    capacity. A unit that may not run there, or finds no room, goes to its allowed device with the
    most room, CPUs included. The fill never returns to a full device.
    """
    need, turn = footprints(problem), accelerators(problem)
    room = problem.capacity.astype(np.float64)
    # (d,) bytes that each device takes in its turn.
    share = np.minimum(room, equal_share(float(need.sum()), room[turn]) + need.max())
    of_unit = np.full(problem.units, -1)
    for op in problem.graph.order:
        unit = int(problem.unit[op])
        if of_unit[unit] >= 0:
            continue
        allowed = problem.allowed[unit]
        while turn and allowed[turn[0]] and share[turn[0]] < need[unit]:
            turn.pop(0)
        in_turn = bool(turn) and bool(allowed[turn[0]])
        device = turn[0] if in_turn else int(np.where(allowed, room, -np.inf).argmax())
        of_unit[unit] = device
        share[device] -= need[unit]
        room[device] -= need[unit]
    return op_devices(problem, of_unit)


def equal_share(total: float, capacity: Floats) -> float:
    """The least limit b such that devices of these capacities (k,) hold the total with at most b
    bytes each; infinite if they cannot.

    Small devices are full, and the others share the rest equally.
    """
    for full_devices, least in enumerate(np.sort(capacity).tolist()):
        part = total / (len(capacity) - full_devices)
        if least >= part:
            return part
        total -= least
    return np.inf


def footprints(problem: Problem) -> Floats:
    """(units,) persistent, output and workspace bytes of each unit: all that it may hold at once,
    because m-TOPO ignores lifetimes."""
    need = problem.unit_persistent.astype(np.float64)
    if problem.rules.memory == "persistent":
        return need
    np.add.at(need, problem.unit, problem.workspace.astype(np.float64))
    outputs = np.where(problem.resident == 1, 0, problem.size).astype(np.float64)
    np.add.at(need, problem.unit[problem.producer], outputs)
    return need
