"""`m_topo`: Baechi's m-TOPO, which fills devices one by one in topological order (Jeon et al., SoCC
2020)."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Floats, Placement
from situate.data.problem import Problem
from situate.data.topology import accelerators, op_devices
from situate.solvers.search import Search


def run(search: Search) -> None:
    """Offer one plan, with ops in the graph's order."""
    search.offer(_fill(search.problem), np.array(search.problem.graph.order, np.int32))


def _fill(problem: Problem) -> Placement:
    """Placement (n,) that fills one accelerator after the other with units in the order of their
    first ops.

    An accelerator takes its share of all bytes plus the bytes of the largest unit, up to its
    capacity. A unit that may not run there, or finds no room, goes to its allowed device with the
    most room, CPUs included. The fill never returns to a full device.
    """
    need, turn = bytes_of_units(problem), accelerators(problem)
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


def bytes_of_units(problem: Problem) -> Floats:
    """(units,) persistent, output and workspace bytes of each unit: all that it may hold at once,
    because m-TOPO ignores lifetimes."""
    need = problem.unit_persistent.astype(np.float64)
    if problem.rules.memory == "persistent":
        return need
    np.add.at(need, problem.unit, problem.workspace.astype(np.float64))
    outputs = np.where(problem.resident == 1, 0, problem.size).astype(np.float64)
    np.add.at(need, problem.unit[problem.producer], outputs)
    return need
