"""A topological order by walking a graph depth first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from situate.data.arrays import Order


def post_order(
    order: Sequence[int], before: Sequence[Sequence[int]], rank: Callable[[int], Any]
) -> Order:
    """(n,) every op after its predecessors, and just before its first successor.

    Args:
        order: (n,) all ops; ops without successors are reached in this order.
        before: (n,) the predecessors of each op, without cycles.
        rank: sort key; of an op's predecessors, the largest comes first.
    """
    awaited = {op for ops in before for op in ops}
    # The stack's end is visited first.
    stack = [op for op in reversed(order) if op not in awaited]
    is_visited = bytearray(len(order))
    visited: list[int] = []
    while stack:
        op = stack[-1]
        missing = [] if is_visited[op] else {i for i in before[op] if not is_visited[i]}
        if missing:
            stack.extend(sorted(missing, key=rank))
            continue
        stack.pop()
        if not is_visited[op]:
            is_visited[op] = 1
            visited.append(op)
    return np.array(visited, np.int32)
