"""The order of a step's ops in which every device runs its program."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from situate.data.graph import Graph


def program_order(graph: Graph, placement: NDArray[np.int32]) -> NDArray[np.int32]:
    """An order in which every op follows its producers, and the op before it on its device.

    Args:
        graph: whose ops of each device stand in the order of its program.
        placement: (n,) the device of each op.
    """
    count = len(graph.ops)
    followers: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for before, after in (*graph.edges(), *_turns(placement)):
        followers[before].append(after)
        missing[after] += 1
    queue = deque(i for i in range(count) if not missing[i])
    order = []
    while queue:
        op = queue.popleft()
        order.append(op)
        for after in followers[op]:
            missing[after] -= 1
            if not missing[after]:
                queue.append(after)
    assert len(order) == count, "the programs of the devices wait for one another"
    return np.array(order, np.int32)


def _turns(placement: NDArray[np.int32]) -> Iterator[tuple[int, int]]:
    """(op, next op) of every device."""
    last: dict[int, int] = {}
    for op, device in enumerate(placement.tolist()):
        if device in last:
            yield last[device], op
        last[device] = op
