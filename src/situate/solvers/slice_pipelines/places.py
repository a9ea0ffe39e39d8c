"""Places of the ops of a step of slices, along the forward pass of one slice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from situate.data.arrays import Bools, Ints, Order
from situate.data.graph import Op
from situate.data.problem import Problem

NOWHERE = -1
"""The place or slice of an op without one."""

Ops = Sequence[int]


def places(problem: Problem, slices: Ints, backward: Bools) -> Ints:
    """(n,) the place of each op; -1 for ops after slices, such as sums of gradients.

    An op that depends on no slice, such as a parameter, is at the place of its first reader. No
    forward op precedes its inputs, and no backward op follows its inputs. All parts of an op have
    one place.

    Args:
        slices: (n,) of each op; -1 for ops that run once a step.
        backward: (n,) True for ops in the backward pass of a slice.
    """
    return _Places(problem, slices, backward).place


class _Places:
    """Places of the first slice's ops; similar ops of other slices have the same places.

    Attributes:
        place: (n,) see `places`.
    """

    def __init__(self, problem: Problem, slices: Ints, backward: Bools) -> None:
        self._ops, self._order = problem.graph.ops, problem.graph.order
        self._slices, self._backward = slices, backward
        self._producers: list[list[int]] = [[] for _ in range(problem.n)]
        self._readers: list[list[int]] = [[] for _ in range(problem.n)]
        for producer, reader in problem.graph.edges():
            self._producers[reader].append(producer)
            self._readers[producer].append(reader)
        self.place = np.full(problem.n, NOWHERE)
        self._first = slices == slices[slices >= 0].min()
        self._forward = self._first & ~backward
        self._signature = _signatures(self._ops, slices, problem.graph.program_order)
        along = _along(problem)
        along = along[self._forward[along]]
        rows = _rows(self._ops, along.tolist())
        self.place[along] = rows
        self._last = int(rows[-1])
        self._place_shared()
        self._place_backward([op for op in self._order if self._first[op] and backward[op]])
        self._place_counterparts()

    def _place_shared(self) -> None:
        """Give each op that depends on no slice the place of its first reader."""
        waits = self._slices >= 0
        for op in self._order:
            waits[op] |= any(waits[other] for other in self._producers[op])
        self._shared = ~waits
        for op in reversed(self._order):
            if self._shared[op]:
                reader_places = [self.place[other] for other in self._readers[op]]
                self.place[op] = min(
                    (place for place in reader_places if place >= 0), default=NOWHERE
                )

    def _place_backward(self, ops: Ops) -> None:
        """Place the backward ops.

        A backward op goes to the last forward op whose result it reads, within its own module, and
        never before its readers. If it reads no forward result, it goes to the forward op that
        reads the same parameter, or else to its inputs.
        """
        spans, least = self._spans(), dict[int, int]()
        # Readers first: an op may not be before any of them.
        for op in reversed(ops):
            begin, end = spans.get(self._ops[op].module, (NOWHERE, self._last))
            own = max((self.place[other] for other in self._forward_producers(op)), default=begin)
            after = [least[other] for other in self._readers[op] if other in least]
            least[op] = max([min(max(own, begin), end), *after])
        # Inputs first: they bound the place of an op from behind.
        for op in ops:
            before = [self.place[other] for other in self._producers[op] if other in least]
            most = min(before, default=self._last)
            self.place[op] = least[op]
            if not self._forward_producers(op):
                _, end = spans.get(self._ops[op].module, (NOWHERE, self._last))
                beside = [place for place in self._uses(op) if place <= most]
                self.place[op] = max([least[op], *(beside or [min(most, end)])])

    def _forward_producers(self, op: int) -> list[int]:
        """The forward ops of the slice whose results an op reads."""
        return [other for other in self._producers[op] if self._forward[other]]

    def _uses(self, op: int) -> list[int]:
        """Places of the forward ops that read the same parameters as an op."""
        readers = (
            self._readers[producer] for producer in self._producers[op] if self._shared[producer]
        )
        return [self.place[op] for ops in readers for op in ops if self._forward[op]]

    def _spans(self) -> dict[str, tuple[int, int]]:
        """(first, last) place of each module's own forward ops, without the root module."""
        spans: dict[str, tuple[int, int]] = {}
        for op in np.flatnonzero(self._forward).tolist():
            module, place = self._ops[op].module, int(self.place[op])
            begin, end = spans.get(module, (place, place))
            spans[module] = min(begin, place), max(end, place)
        spans.pop("", None)
        return spans

    def _place_counterparts(self) -> None:
        """Place ops of other slices like their counterparts in the first slice.

        A forward op still never precedes its inputs, and a backward op never follows them.
        """
        place_of = {
            self._signature[op]: int(self.place[op]) for op in self._order if self._first[op]
        }
        for op in self._order:
            if self._slices[op] >= 0 and not self._first[op]:
                back = self._backward[op]
                place = place_of.get(self._signature[op], self._last if back else 0)
                before = [
                    int(self.place[other])
                    for other in self._producers[op]
                    if self._slices[other] >= 0 and self._backward[other] == back
                ]
                self.place[op] = (min if back else max)([place, *before])


def _along(problem: Problem) -> Order:
    """(n,) the ops along the model: depth first, or op by op where ops are in parts."""
    if all(op.part is None for op in problem.graph.ops):
        return problem.depth_first
    return np.array(problem.graph.program_order, np.int32)


def _rows(ops: Sequence[Op], along: Ops) -> Ints:
    """(ops,) rising numbers, one for each whole op and for the parts of an op, which follow one
    another."""
    begins = np.zeros(len(along), np.int64)
    for i, (before, op) in enumerate(pairwise(along), 1):
        last, part = ops[before].part, ops[op].part
        is_part = last is not None and part is not None and last <= part
        begins[i] = not (is_part and ops[before].module == ops[op].module)
    return np.cumsum(begins)


_Signature = tuple[str, str, str, int]


def _signatures(ops: Sequence[Op], slices: Ints, program: Ops) -> dict[int, _Signature]:
    """For each op of a slice: its module, kind and phase, and its number among such ops.

    Corresponding ops of different slices have equal values.
    """
    counts: Counter[tuple[int, str, str, str]] = Counter()
    signatures: dict[int, _Signature] = {}
    for op in program:
        if slices[op] >= 0:
            kind = ops[op].module, ops[op].kind, ops[op].phase
            signatures[op] = (*kind, counts[slices[op], *kind])
            counts[slices[op], *kind] += 1
    return signatures
