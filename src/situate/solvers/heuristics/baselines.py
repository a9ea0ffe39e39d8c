"""Baselines: `single` uses one device, `expert` the papers' placement by hand, `random` chance."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Ints, Order, Placement
from situate.data.problem import Problem
from situate.data.topology import accelerators, op_devices
from situate.solvers.incumbent import Candidate
from situate.solvers.search import Search

SAMPLES = 1000
"""Number of random decisions if no number of evaluations is given."""


def single(search: Search) -> None:
    """Try one device of every kind; ops that may not run there go elsewhere."""
    for placement, order in single_plans(search.problem):
        search.offer(placement, order)


def single_plans(problem: Problem) -> Iterator[tuple[Placement, Order]]:
    """Placements (n,) on one device of every kind, each with an order (n,)."""
    order = np.array(problem.graph.program_order, np.int32)
    for device in distinct_devices(problem):
        yield everything_on(problem, device), order


def everything_on(problem: Problem, device: int) -> Placement:
    """Placement (n,) of every op on the device, or on the first one it may run on."""
    first = problem.allowed.argmax(axis=1)
    of_unit = np.where(problem.allowed[:, device], device, first)
    return op_devices(problem, of_unit)


def distinct_devices(problem: Problem) -> list[int]:
    """The first device of every kind: equal kind, seconds, capacity and links."""
    first_devices: dict[bytes, int] = {}
    for device in range(problem.d):
        first_devices.setdefault(_signature(problem, device), device)
    return list(first_devices.values())


def _signature(problem: Problem, device: int) -> bytes:
    columns: list[NDArray[np.generic]] = [
        problem.seconds[:, device],
        problem.allowed[:, device],
        problem.capacity[device : device + 1],
        # Sorted, because devices of one kind may list their neighbours in different orders.
        np.sort(problem.latency[device]),
        np.sort(problem.latency[:, device]),
        np.sort(problem.bandwidth[device]),
        np.sort(problem.bandwidth[:, device]),
    ]
    kind = problem.cluster.devices[device].kind.encode()
    return kind + b"".join(column.tobytes() for column in columns)


def expert(search: Search) -> None:
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


def random_search(search: Search) -> None:
    """Draw until the budget ends."""
    for _ in draw(search, search.budget.evaluation_limit or SAMPLES):
        if search.finished():
            return


def draw(search: Search, samples: int) -> Iterator[Candidate]:
    """Offer so many decisions with a random allowed device for every unit and a random order of
    the ops; equal seeds give equal decisions."""
    problem = search.problem
    generator = np.random.default_rng(search.seed)
    choices = problem.allowed.sum(axis=1)
    # (units, d) devices of each unit, allowed ones first, so that indices below its number of
    # choices are allowed devices.
    ranked = np.argsort(~problem.allowed, axis=1, kind="stable")
    for _ in range(samples):
        pick = generator.integers(choices)
        of_unit = ranked[np.arange(problem.units), pick]
        order = generator.permutation(problem.n).astype(np.int32)
        yield search.offer(op_devices(problem, of_unit), order, search.decoders[:1])
