"""Steps of one exchange, made by hand: ops that make its sources, and ops that read its results."""

from __future__ import annotations

from collections.abc import Sequence

from situate.data.cuts import parse_cuts
from situate.data.graph import Graph, Op, Tensor

SIZE = 2**20
"""Bytes of the whole tensor."""


class _Step:
    """A graph that grows; each op makes one tensor."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self._readers: list[list[int]] = []
        self._sizes: list[int] = []

    def add(self, name: str, kind: str, part: int | None, size: int, reads: Sequence[int]) -> int:
        for source in reads:
            self._readers[source].append(len(self.ops))
        self.ops.append(Op(name, kind, traffic=2 * size, part=part, phase="forward"))
        self._readers.append([])
        self._sizes.append(size)
        return len(self.ops) - 1

    def total(self, terms: Sequence[int], part: int, size: int, is_tree: bool) -> int:
        """The sum of terms, one after the other or in pairs."""
        own = list(terms)
        while len(own) > 1:
            pair, own = own[:2], own[2:]
            term = self.add(f"sum{len(self.ops)} of {part}", "aten.add", part, size, pair)
            own = [*own, term] if is_tree else [term, *own]
        return own[0]

    def graph(self, parts: int) -> Graph:
        """The graph so far."""
        tensors = tuple(
            Tensor(f"t{j}", j, size, tuple(readers))
            for j, (size, readers) in enumerate(zip(self._sizes, self._readers, strict=True))
        )
        return Graph("exchange", tuple(self.ops), tensors, cuts=parse_cuts([f"features={parts}"]))


def exchanged(
    kind: str,
    parts: int,
    size: int = SIZE,
    receivers: int | None = None,
    readers: int = 1,
    is_tree: bool = False,
    has_residual: bool = False,
    is_whole: bool = False,
) -> Graph:
    """A step of one exchange.

    Args:
        kind: of the collective, or `small_all_reduce` for partial results that nobody slices.
        size: bytes of the whole tensor.
        receivers: parts that receive; None for all.
        readers: concatenations of a part.
        is_tree: true for sums of pairs.
        has_residual: true if an addition reads the sum of each part.
        is_whole: true if the sources are whole ops.
    """
    step, everyone = _Step(), range(parts if receivers is None else receivers)
    one = size // parts
    given = one if kind in ("all_gather", "all_to_all") else size
    own = [None if is_whole else k for k in range(parts)]
    sources = [step.add(f"source{k}", "aten.mm", own[k], given, []) for k in range(parts)]
    results = sources
    if kind in ("reduce_scatter", "all_reduce", "all_to_all"):
        piece = given // parts
        slices = [
            [step.add(f"slice{k} of {j}", "aten.clone", own[j], piece, [sources[j]]) for j in own]
            for k in everyone
        ]
        if kind == "all_to_all":
            results = [step.add(f"join{k}", "aten.cat", k, one, slices[k]) for k in everyone]
        else:
            results = [step.total(slices[k], k, piece, is_tree) for k in everyone]
    if kind == "small_all_reduce":
        results = [step.total(sources, k, size, is_tree) for k in everyone]
    if has_residual:
        for k in everyone:
            beside = step.add(f"residual{k}", "aten.mm", k, one, [])
            step.add(f"residual sum{k}", "aten.add", k, one, [results[k], beside])
    if kind in ("all_gather", "all_reduce"):
        joins = [
            (k, step.add(f"join{k}, {i}", "aten.cat", k, size, results))
            for k in everyone
            for i in range(readers)
        ]
    else:
        joins = list(zip(everyone, results, strict=True))
    for k, join in joins:
        step.add(f"reader {len(step.ops)}", "aten.mm", k, 0, [join])
    return step.graph(parts)
