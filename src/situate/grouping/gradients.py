"""The op of the forward pass that an op of the backward pass is the gradient of."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from situate.data.graph import Graph, Tensor
from situate.data.op_classes import op_class
from situate.grouping.module_calls import Call, runs_forward

MAX_SHARED_OPS = 16
"""Most ops of one module that share a tensor which still identifies a gradient's forward op."""

Place = tuple[str, Call | None]
"""A module and its call."""


def forward_ops(graph: Graph, calls: Sequence[Call | None]) -> dict[int, int]:
    """By backward op, its forward op, where there is one.

    The forward op is in the same module and reads or produces inputs of its gradient. Of several
    such ops, the one with most common tensors wins, then one of the same op class, then the first.
    A gradient without such an op, such as a sum of gradients, takes the forward op of a gradient of
    its module that it reads, or else of one that reads it.

    Args:
        graph: with phases; if they are unknown, nothing is a gradient.
        calls: the call of every op, see `situate.grouping.module_calls`.
    """
    places = [(op.module, call) for op, call in zip(graph.ops, calls, strict=True)]
    forward = {op: _best(graph, op, shared) for op, shared in _shared(graph, places).items()}
    order = [op for op in graph.order if graph.ops[op].phase == "backward"]
    reads, read_by = _neighbours(graph, places)
    _follow(forward, order, reads)
    _follow(forward, order[::-1], read_by)
    return forward


def _shared(graph: Graph, places: Sequence[Place]) -> dict[int, Counter[int]]:
    """For gradients the forward ops of their place, with the number of tensors in common."""
    shared: dict[int, Counter[int]] = defaultdict(Counter)
    for tensor in graph.tensors:
        gradients = [op for op in tensor.consumers if graph.ops[op].phase == "backward"]
        forward = _forward(graph, tensor, places) if gradients else {}
        for op in gradients:
            ops = forward.get(places[op], ())
            shared[op].update(ops if len(ops) <= MAX_SHARED_OPS else ())
    return {op: counts for op, counts in shared.items() if counts}


def _forward(graph: Graph, tensor: Tensor, places: Sequence[Place]) -> dict[Place, list[int]]:
    """By place, the forward ops that make or read a tensor."""
    result: dict[Place, list[int]] = defaultdict(list)
    for op in (tensor.producer, *tensor.consumers):
        if runs_forward(graph.ops[op]):
            result[places[op]].append(op)
    return result


def _best(graph: Graph, gradient: int, shared: Counter[int]) -> int:
    own = op_class(graph.ops[gradient].kind)
    return min(shared, key=lambda op: (-shared[op], op_class(graph.ops[op].kind) != own, op))


def _neighbours(
    graph: Graph, places: Sequence[Place]
) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """By gradient, the gradients of the same module that it reads, and those that read it."""
    reads: dict[int, list[int]] = defaultdict(list)
    read_by: dict[int, list[int]] = defaultdict(list)
    for tensor in graph.tensors:
        for op in tensor.consumers:
            if places[op] == places[tensor.producer]:
                reads[op].append(tensor.producer)
                read_by[tensor.producer].append(op)
    return reads, read_by


def _follow(
    forward_of: dict[int, int], order: Iterable[int], neighbours: dict[int, list[int]]
) -> None:
    """Give ops without a forward op that of their first neighbour with one."""
    for op in order:
        if op not in forward_of:
            near = (forward_of[other] for other in neighbours.get(op, ()) if other in forward_of)
            forward_of.update((op, forward) for forward in list(near)[:1])
