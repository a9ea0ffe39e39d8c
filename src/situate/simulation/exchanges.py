"""The exchanges of a step in parts: the slices, sums and concatenations that a collective replaces.

In an exchange each part gives one tensor, its source, and each part makes its own result of all
sources: their concatenation or their sum, of all of it or of one slice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from situate.data.graph import Graph

Kind = Literal["all_gather", "reduce_scatter", "all_reduce", "all_to_all"]

SLICE, SUM, JOIN = "aten.clone", "aten.add", "aten.cat"
"""Kinds of the ops of an exchange. A slice is a copy of a view."""


@dataclass(frozen=True)
class Exchange:
    """An exchange among all parts; each field after the kind has one entry for each part.

    Attributes:
        sources: the tensor that a part gives.
        results: the tensors that a part makes; all of them hold the same.
        ops: the slices, sums and concatenations of a part.
    """

    kind: Kind
    sources: tuple[int, ...]
    results: tuple[tuple[int, ...], ...]
    ops: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class _Join:
    """The ops by which a part makes a result.

    Attributes:
        kind: `SUM` or `JOIN`.
        sources: by part, the tensor that it gives.
        slices: by part, the op that slices that tensor; empty if the tensor is read whole.
        ops: sums or a concatenation; the last one makes the result.
    """

    kind: str
    sources: dict[int, int]
    slices: dict[int, int]
    ops: tuple[int, ...]

    def plus(self, other: _Join, op: int) -> _Join | None:
        """The sum of two joins, made by an op; None if a part would give two tensors."""
        # Keys are parts: fewer keys than before say that a part gives in both terms.
        sources, slices = self.sources | other.sources, self.slices | other.slices
        if len(sources) < len(self.sources) + len(other.sources):
            return None
        if slices and len(slices) < len(sources):
            return None
        return _Join(SUM, sources, slices, (*self.ops, *other.ops, op))


def exchanges(graph: Graph) -> list[Exchange]:
    """The exchanges of a step in which all parts give and all parts receive.

    A reduce-scatter is followed by an all-gather in an all-reduce, which is one exchange.
    """
    wiring = _Wiring(graph)
    groups: dict[object, dict[int, list[_Join]]] = defaultdict(lambda: defaultdict(list))
    for part, join in wiring.joins():
        # Joins of the same sources belong to one exchange, whichever part makes them.
        key = join.kind, bool(join.slices), *sorted(join.sources.items())
        groups[key][part].append(join)
    simple = [
        wiring.exchange(joins)
        for joins in groups.values()
        # As many parts receive as give, and those are all parts.
        if sorted(joins) == list(range(len(joins[min(joins)][0].sources)))
    ]
    return _fused(simple, wiring)


class _Wiring:
    """The tensors that the ops of a graph read and make."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.part = [op.part for op in graph.ops]
        self.readers = [tensor.consumers for tensor in graph.tensors]
        self._producer = [tensor.producer for tensor in graph.tensors]
        self._inputs: list[list[int]] = [[] for _ in graph.ops]
        self._outputs: list[list[int]] = [[] for _ in graph.ops]
        for t, tensor in enumerate(graph.tensors):
            self._outputs[tensor.producer].append(t)
            for reader in tensor.consumers:
                self._inputs[reader].append(t)

    def joins(self) -> Iterator[tuple[int, _Join]]:
        """(part, join) of every result that a part makes of tensors of other parts."""
        sums: dict[int, _Join] = {}
        inner: set[int] = set()
        for j in self._graph.order:
            op, part = self._graph.ops[j], self.part[j]
            if part is None or len(self._outputs[j]) != 1:
                continue
            if op.kind == JOIN and (join := self._concatenation(j)) is not None:
                yield part, join
            elif op.kind == SUM and (join := self._sum(j, sums)) is not None:
                sums[j] = join
                # A sum that another sum reads is a step on the way to it, not a result.
                inner.update(self._producer[t] for t in self._inputs[j])
        yield from ((self.part[j] or 0, join) for j, join in sums.items() if j not in inner)

    def _concatenation(self, j: int) -> _Join | None:
        leaves = [self._leaf(j, t) for t in self._inputs[j]]
        total = leaves[0] if leaves else None
        for leaf in leaves[1:]:
            total = None if total is None or leaf is None else total.plus(leaf, j)
        if total is None or len(total.sources) < 2:
            return None
        return replace(total, kind=JOIN, ops=(j,))

    def _sum(self, j: int, sums: dict[int, _Join]) -> _Join | None:
        if len(self._inputs[j]) != 2:
            return None
        terms = []
        for t in self._inputs[j]:
            # A partial sum with other readers is a result of its own, and here a source.
            own = sums.get(self._producer[t]) if self.readers[t] == (j,) else None
            terms.append(own or self._leaf(j, t))
        one, other = terms
        return None if one is None or other is None else one.plus(other, j)

    def _leaf(self, j: int, t: int) -> _Join | None:
        """A tensor that an op reads, as a slice of its source or as the source itself; None for one
        of a whole op."""
        producer = self._producer[t]
        part, reads = self.part[producer], self._inputs[producer]
        if part is None:
            return None
        is_slice = self._graph.ops[producer].kind == SLICE and self.readers[t] == (j,)
        # A slice of another part's tensor is a source itself.
        if is_slice and len(reads) == 1 and self.part[self._producer[reads[0]]] == part:
            return _Join(SUM, {part: reads[0]}, {part: producer}, ())
        return _Join(SUM, {part: t}, {}, ())

    def exchange(self, joins: dict[int, list[_Join]]) -> Exchange:
        """The exchange of the joins of all parts."""
        parts, first = range(len(joins)), joins[0][0]
        ops: list[list[int]] = [[] for _ in parts]
        for part, own in sorted(joins.items()):
            for join in own:
                ops[part] += join.ops
                # The giver slices, so the slice is an op of its part.
                for giver, op in join.slices.items():
                    ops[giver].append(op)
        return Exchange(
            _kind(first),
            tuple(first.sources[part] for part in parts),
            tuple(tuple(self._outputs[join.ops[-1]][0] for join in joins[p]) for p in parts),
            tuple(map(tuple, ops)),
        )


def _kind(join: _Join) -> Kind:
    if join.kind == JOIN:
        return "all_to_all" if join.slices else "all_gather"
    return "reduce_scatter" if join.slices else "all_reduce"


def _fused(simple: Sequence[Exchange], wiring: _Wiring) -> list[Exchange]:
    """Exchanges in which each reduce-scatter that only an all-gather reads is one all-reduce."""
    scattered = {
        tuple(own[0] for own in exchange.results): exchange
        for exchange in simple
        if exchange.kind == "reduce_scatter" and all(len(own) == 1 for own in exchange.results)
    }
    fused: dict[Exchange, Exchange | None] = {}
    for gather in simple:
        first = scattered.get(gather.sources) if gather.kind == "all_gather" else None
        # A sum with other readers is needed as such, so the two stay apart.
        readers = {reader for t in gather.sources for reader in wiring.readers[t]}
        if first is not None and readers <= {op for own in gather.ops for op in own}:
            ops = tuple(a + b for a, b in zip(first.ops, gather.ops, strict=True))
            fused[first] = Exchange("all_reduce", first.sources, gather.results, ops)
            fused[gather] = None
    merged = (fused.get(exchange, exchange) for exchange in simple)
    return [exchange for exchange in merged if exchange is not None]
