"""`expert`: the placement by hand that the papers describe for their networks."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Ints, Placement
from situate.data.problem import Problem
from situate.data.topology import accelerators, op_devices
from situate.solvers.search import Search


def run(search: Search) -> None:
    """Stages of the network on the accelerators, in order.

    Raises:
        SituateError: no expert placement is known for the graph.
    """
    search.offer(expert_placement(search.problem), np.array(search.problem.graph.order, np.int32))


def expert_placement(problem: Problem) -> Placement:
    """Placement (n,) by the network's rule, see docs/zoo.md; pins and groups take precedence."""
    from situate.zoo import expert

    devices = accelerators(problem)
    stage = np.array(expert(problem.graph, len(devices)))
    return wish_placement(problem, np.array(devices)[stage])


def wish_placement(problem: Problem, wishes: Ints) -> Placement:
    """Placement (n,) of ops on the devices of `wishes` (n,); pins and groups take precedence."""
    of_unit = problem.allowed.argmax(axis=1)
    # Backwards, so that the wish of a unit's first op decides.
    for op in reversed(problem.graph.order):
        if problem.allowed[problem.unit[op], wishes[op]]:
            of_unit[problem.unit[op]] = wishes[op]
    return op_devices(problem, of_unit)
