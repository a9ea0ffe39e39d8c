"""Downsets of layers: sets that hold all layers after theirs. Stages are differences of these."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np

from situate.sharding.stages import StageProblem, neighbours


def layer_order(problem: StageProblem) -> list[int]:
    """The ids of layers, each after those it reads, else as in the file."""
    before, after = neighbours(problem.edges)
    ids = [*problem.layers]
    place = {layer: i for i, layer in enumerate(ids)}
    waits = {layer: len(before.get(layer, ())) for layer in ids}
    ready = [place[layer] for layer, count in waits.items() if count == 0]
    order = []
    while ready:
        layer = ids[heappop(ready)]
        order.append(layer)
        for other in after.get(layer, ()):
            waits[other] -= 1
            if waits[other] == 0:
                heappush(ready, place[other])
    return order


def all_downsets(problem: StageProblem, order: Sequence[int], most: int) -> list[int] | None:
    """All downsets, as bits by place in the order; None if there are more than `most`."""
    place = {layer: i for i, layer in enumerate(order)}
    before, after = neighbours(problem.edges)
    inputs = [[place[end] for end in before.get(layer, ())] for layer in order]
    readers = [sum(1 << place[end] for end in after.get(layer, ())) for layer in order]
    last = [i for i, bits in enumerate(readers) if bits == 0]
    # Each entry: a downset, and the layers outside whose readers it holds.
    downsets, pending = {0}, [(0, last)]
    while pending:
        downset, ready = pending.pop()
        for i in ready:
            larger = downset | 1 << i
            if larger in downsets:
                continue
            downsets.add(larger)
            if len(downsets) > most:
                return None
            # An input of the new layer may join once all its readers are inside.
            freed = [j for j in inputs[i] if not readers[j] & ~larger]
            pending.append((larger, [j for j in ready if j != i] + freed))
    return sorted(downsets, key=_by_size)


def _by_size(downset: int) -> tuple[int, int]:
    return downset.bit_count(), downset


def suffixes(order: Sequence[int]) -> list[int]:
    """The downsets of one order of the layers."""
    count = len(order)
    # The last k layers: k ones above count - k zeros.
    return [((1 << k) - 1) << (count - k) for k in range(count + 1)]


def cheapest_cuts(
    problem: StageProblem, order: Sequence[int], downsets: Sequence[int], count: int
) -> list[int]:
    """About `count` of the downsets, of evenly spaced sizes from none to all layers: of each size
    that of the order, and those with the fewest bytes between them and the other layers."""
    cuts = _cut_bytes(problem, order, as_array(downsets, len(order)))
    by_size: dict[int, list[tuple[float, int]]] = {}
    for cut, downset in zip(cuts.tolist(), downsets, strict=True):
        by_size.setdefault(downset.bit_count(), []).append((cut, downset))
    sizes = {round(k * len(order) / (count - 1)) for k in range(count)}
    share = max(1, count // len(sizes))
    cheapest = {downset for size in sizes for _, downset in sorted(by_size[size])[:share]}
    cheapest |= {downset for downset in suffixes(order) if downset.bit_count() in sizes}
    return sorted(cheapest, key=_by_size)


def _cut_bytes(problem: StageProblem, order: Sequence[int], rows: np.ndarray) -> np.ndarray:
    """(downsets,) bytes between a downset and the other layers."""
    place = {layer: i for i, layer in enumerate(order)}
    columns = np.ascontiguousarray(rows.T)
    cuts = np.zeros(len(rows))
    for (a, b), size in problem.edges.items():
        # A downset that holds `a` holds `b` too, so the edge is cut where it holds `b` alone.
        cuts += size * (columns[place[b]] > columns[place[a]])
    return cuts


def as_array(downsets: Sequence[int], layers: int) -> np.ndarray:
    """(downsets, layers) 1 for the layers of each."""
    # Layer i is bit i % 8 of byte i // 8 in a row.
    size = -(-layers // 8)
    data = b"".join(downset.to_bytes(size, "little") for downset in downsets)
    rows = np.frombuffer(data, np.uint8).reshape(-1, size)
    bits = np.unpackbits(rows, axis=1, count=layers, bitorder="little")
    return np.ascontiguousarray(bits)


def members(downset: int, rest: int, order: Sequence[int]) -> tuple[int, ...]:
    """The layers of a downset that are not in another, in order."""
    return tuple(layer for i, layer in enumerate(order) if (downset & ~rest) >> i & 1)
