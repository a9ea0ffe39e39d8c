"""`single`: everything on the one best device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Order, Placement
from situate.data.problem import Problem
from situate.data.topology import op_devices
from situate.solvers.search import Search


def run(search: Search) -> None:
    """Try one device of every kind; ops that may not run there go elsewhere."""
    for placement, order in plans(search.problem):
        search.offer(placement, order)


def plans(problem: Problem) -> Iterator[tuple[Placement, Order]]:
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
