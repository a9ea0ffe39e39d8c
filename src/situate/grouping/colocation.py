"""`colocation`: groups by hand, as ColocRL makes them.

A. Mirhoseini et al., *Device Placement Optimization with Reinforcement Learning*, ICML 2017: ops
that the framework colocates are together, and so are an op and its gradients; an LSTM cell is a
group at every step; and where the output of an op is consumed by one other op alone, the two are
together, and so on with the groups until none is left to merge.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from situate.data.graph import Graph, Tensor
from situate.data.op_classes import op_class
from situate.data.problem import Problem
from situate.grouping.module_calls import SHARED, Call, calls, runs_forward
from situate.grouping.units import op_work

HEAVY_CLASSES = ("convolution", "matmul", "attention")
"""Op classes whose ops stay apart, so that a chain of layers does not become one group."""


def labels(problem: Problem, count: int) -> NDArray[np.int64]:
    """Labels (units,) of the groups; `count` does not matter."""
    module_calls = calls(problem.graph)
    forward = forward_ops(problem.graph, module_calls)
    sets = UnionFind(problem.units)
    _merge_calls(problem, sets, module_calls)
    for gradient, op in forward.items():
        sets.merge(int(problem.unit[op]), int(problem.unit[gradient]))
    # follows (n,): ops of the backward pass whose group is settled by their forward op or call.
    follows = np.array([_in_call(call) or op in forward for op, call in enumerate(module_calls)])
    follows &= np.array([op.phase == "backward" for op in problem.graph.ops])
    source, target = _flows(problem, follows)
    while _merge_into_consumers(problem, sets, source, target):
        pass
    return sets.roots()


def _merge_calls(problem: Problem, sets: UnionFind, module_calls: Sequence[Call | None]) -> None:
    """Merge every call of a module into a group, and the ops shared by the module's calls into
    another."""
    home: dict[Call, int] = {}
    for call, unit in zip(module_calls, problem.unit.tolist(), strict=True):
        if call is not None:
            sets.merge(home.setdefault(call, unit), unit)


def _in_call(call: Call | None) -> bool:
    return call is not None and call[1] != SHARED


def _flows(
    problem: Problem, follows: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Producing and consuming unit of every tensor that counts for merging.

    Gradients that follow their op do not count, because otherwise nearly every output would have
    two consumers.
    """
    # Entries behind `data` are control edges. producer, consumer (edges,): one entry for every op
    # that reads a tensor.
    data = len(problem.graph.tensors)
    length = np.diff(problem.consumer_start)[:data]
    producer = np.repeat(problem.producer[:data], length)
    consumer = problem.consumers[: len(producer)]
    counts = ~follows[producer] & ~follows[consumer]
    units = problem.unit.astype(np.int64)
    return units[producer[counts]], units[consumer[counts]]


def _merge_into_consumers(
    problem: Problem, sets: UnionFind, source: NDArray[np.int64], target: NDArray[np.int64]
) -> bool:
    """Merge every group, in the order of the graph, with the only other group that consumes its
    outputs, unless both are heavy. Returns whether any were merged."""
    root = sets.roots()
    # (units,), read at roots alone: a group is heavy if one of its ops (n,) is.
    heavy = np.zeros(problem.units, np.bool_)
    np.logical_or.at(heavy, root[problem.unit], _heavy(problem))
    changed = False
    for group, consumer in _only_consumers(problem, root, source, target):
        a, b = sets.root(group), sets.root(consumer)
        if a != b and not (heavy[a] and heavy[b]):
            heavy[sets.merge(a, b)] = heavy[a] or heavy[b]
            changed = True
    return changed


def _only_consumers(
    problem: Problem,
    root: NDArray[np.int64],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
) -> list[tuple[int, int]]:
    """Groups that one other group alone consumes, with that one, in the order of the graph."""
    # Units of an edge to groups; unique pairs as single integers, without edges inside a group.
    # `group` comes out ascending, so equal entries adjoin and their count is the number of
    # consumers.
    a, b = root[source], root[target]
    group, consumer = np.divmod(np.unique((a * problem.units + b)[a != b]), problem.units)
    _, place, consumers = np.unique(group, return_index=True, return_counts=True)
    only = place[consumers == 1]
    # first (units,): rank of a group's earliest op in the graph's order.
    first = np.full(problem.units, problem.n)
    np.minimum.at(first, root[problem.unit[list(problem.graph.order)]], np.arange(problem.n))
    only = only[np.argsort(first[group[only]], kind="stable")]
    return list(zip(group[only].tolist(), consumer[only].tolist(), strict=True))


def reads_work(problem: Problem) -> bool:
    """True if the graph has no op of the heavy classes, so that work tells heavy ops apart."""
    return not _of_heavy_classes(problem).any()


def _of_heavy_classes(problem: Problem) -> NDArray[np.bool_]:
    return np.array([op_class(op.kind) in HEAVY_CLASSES for op in problem.graph.ops], np.bool_)


def _heavy(problem: Problem) -> NDArray[np.bool_]:
    """(n,) true for ops of the heavy classes; without any, for ops of at least average work."""
    heavy = _of_heavy_classes(problem)
    if heavy.any():
        return heavy
    work = op_work(problem)
    # Where all ops are alike all are heavy, whatever rounding does to the mean.
    return np.asarray(work >= work.mean() * (1 - 1e-9))


# The op of the forward pass that an op of the backward pass is the gradient of.
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


# Disjoint sets of units, merged two by two (union-find).
class UnionFind:
    """`units` sets of one unit each, to begin with; a set is named after its lowest unit."""

    def __init__(self, units: int) -> None:
        self._parent = list(range(units))

    def root(self, unit: int) -> int:
        """The lowest unit of the set that a unit is in."""
        parent = self._parent
        while parent[unit] != unit:
            # Path halving: later look-ups pass over every other unit of this path.
            parent[unit] = parent[parent[unit]]
            unit = parent[unit]
        return unit

    def merge(self, a: int, b: int) -> int:
        """Make the sets of two units one; returns its lowest unit."""
        low, high = sorted((self.root(a), self.root(b)))
        self._parent[high] = low
        return low

    def roots(self) -> NDArray[np.int64]:
        """(units,) the lowest unit of every unit's set."""
        return np.array([self.root(unit) for unit in range(len(self._parent))], np.int64)
