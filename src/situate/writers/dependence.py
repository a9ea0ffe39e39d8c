"""The part of a forward pass that depends on chosen ops, and the part that they depend on."""

from __future__ import annotations

from collections.abc import Sequence

from situate.data.graph import Graph, Op


def runs_forward(op: Op) -> bool:
    """True if the op computes in the forward pass."""
    return op.kind not in ("parameter", "buffer") and op.phase in ("", "forward")


def dependence(graph: Graph, selection: Sequence[bool]) -> tuple[list[bool], list[bool]]:
    """For every op, whether it depends on a chosen op, and whether a chosen op depends on it."""
    n = len(graph.ops)
    consumers: list[list[int]] = [[] for _ in range(n)]
    for producer, consumer in graph.edges():
        if runs_forward(graph.ops[consumer]):
            consumers[producer].append(consumer)
    behind, ahead = [False] * n, [False] * n
    for op in graph.order:
        if behind[op] or selection[op]:
            for consumer in consumers[op]:
                behind[consumer] = True
    for op in reversed(graph.order):
        ahead[op] = any(ahead[consumer] or selection[consumer] for consumer in consumers[op])
    return behind, ahead
