"""The order of a tree of ops that needs the least memory on one device.

J. W. H. Liu, "An Application of Generalized Tree Pebbling to Sparse Matrix Factorization", SIAM
Journal on Algebraic and Discrete Methods 8(3), 1987.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from situate.data.arrays import Order
from situate.data.problem import Problem
from situate.data.topology import edge_producers, places

SECONDS_AN_OP = 1e-5
"""Seconds that `tree_order` takes for each op at most."""


@dataclass(frozen=True, eq=False)
class TreeOrder:
    """An order of ops.

    Attributes:
        order: (n,) ops.
        bytes: peak bytes of tensors and workspaces on one device, if no tensor has two readers.
    """

    order: Order
    bytes: int


class _Segment(NamedTuple):
    """A sequence of ops, up to a moment with less memory in use than at any later one.

    Attributes:
        rise: peak bytes in use during it, above those before it.
        change: bytes in use after it, above those before it.
        ops: an op, or a pair of such sequences.
    """

    rise: int
    change: int
    ops: object

    @property
    def drop(self) -> int:
        """Bytes from the fullest moment to the end."""
        return self.rise - self.change


def tree_order(problem: Problem) -> TreeOrder:
    """An order in which the subtrees of an op take turns, each up to a moment of low memory use.

    The sequence with the largest drop from its peak goes first. Each op belongs to the subtree of
    its first reader, depth first. In a tree no order needs less memory on one device.
    """
    parent = _parents(problem)
    peak, residual, input_bytes = _bytes(problem, parent)
    # Sequences of the ops that end at each op, and behind them of those that nothing reads.
    parts: list[list[list[_Segment]]] = [[] for _ in range(problem.n + 1)]
    for op, into in zip(problem.depth_first.tolist(), parent[problem.depth_first], strict=True):
        segments = _in_turn(parts[op])
        _append(segments, _Segment(peak[op], residual[op] - input_bytes[op], op))
        parts[into].append(segments)
        parts[op] = []
    segments = _in_turn(parts[-1])
    in_use = np.cumsum([0, *(segment.change for segment in segments)])
    fullest = max(int(before) + s.rise for before, s in zip(in_use, segments, strict=False))
    return TreeOrder(np.array(list(_ops(segments)), np.int32), fullest)


def is_tree(problem: Problem) -> bool:
    """True if every op has at most one reader, control edges included."""
    # Distinct pairs of producer and reader, as many as producers if each has one reader.
    readers = problem.n * edge_producers(problem).astype(np.int64) + problem.consumers
    return len(np.unique(readers)) == len(np.unique(edge_producers(problem)))


def _parents(problem: Problem) -> Order:
    """(n,) the first reader of each op, depth first; n if there is none."""
    place = np.full(problem.n, problem.n)
    np.minimum.at(place, edge_producers(problem), places(problem.depth_first)[problem.consumers])
    # Place n, of an op that nothing reads, has n in place of an op.
    return np.asarray(np.append(problem.depth_first, problem.n)[place], np.int32)


def _bytes(problem: Problem, parent: Order) -> tuple[list[int], list[int], list[int]]:
    """For each op (n + 1,): peak bytes while it runs, bytes of its outputs after it, and bytes of
    its inputs, which end with it. Tensors end with the op's parent."""
    size = np.where(problem.resident == 1, 0, problem.size)
    is_read = np.diff(problem.consumer_start) > 0
    peak, residual, input_bytes = problem.workspace.copy(), *np.zeros((2, problem.n + 1), np.int64)
    np.add.at(peak, problem.producer, size)
    # A tensor that no op reads ends with its producer, unless the step returns it.
    np.add.at(residual, problem.producer, np.where(is_read | (problem.output == 1), size, 0))
    np.add.at(
        input_bytes, parent[problem.producer], np.where(is_read & (problem.output == 0), size, 0)
    )
    return peak.tolist(), residual.tolist(), input_bytes.tolist()


def _in_turn(parts: list[list[_Segment]]) -> list[_Segment]:
    """Merge sequences into one; the segment with the largest drop goes first."""
    if len(parts) == 1:
        return parts[0]
    # Drops fall along every sequence, see `_append`, so the sort keeps the order of each.
    return sorted(chain.from_iterable(parts), key=lambda segment: -segment.drop)


def _append(segments: list[_Segment], segment: _Segment) -> None:
    """Add a segment; merge it with earlier ones that end higher or peak lower."""
    while segments:
        before = segments[-1]
        # Liu's hills and valleys: along the list, peaks fall and ends rise.
        fuller = before.change + segment.rise
        if fuller < before.rise and segment.change > 0:
            break
        segments.pop()
        both = max(before.rise, fuller), before.change + segment.change
        segment = _Segment(*both, (before.ops, segment.ops))
    segments.append(segment)


def _ops(segments: Iterable[_Segment]) -> Iterable[int]:
    """The ops of sequences."""
    waiting: list[object] = [segment.ops for segment in segments][::-1]
    while waiting:
        ops = waiting.pop()
        if isinstance(ops, tuple):
            waiting += ops[::-1]
        else:
            yield int(ops)  # type: ignore[call-overload]
