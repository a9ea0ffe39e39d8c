"""Downsets of layers: sets that hold all layers after theirs. Stages are differences of these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from situate.sharding.stages import StageProblem


def layer_order(problem: StageProblem) -> list[int]:
    """The ids of layers, each after those it reads, else as in the file."""
    waits = dict.fromkeys(problem.layers, 0)
    for _, b in problem.edges:
        waits[b] += 1
    order = []
    while waits:
        layer = next(layer for layer, count in waits.items() if count == 0)
        del waits[layer]
        order.append(layer)
        for a, b in problem.edges:
            if a == layer:
                waits[b] -= 1
    return order


def all_downsets(problem: StageProblem, order: Sequence[int], most: int) -> list[int] | None:
    """All downsets, as bits by place in the order; None if there are more than `most`."""
    after = _after(problem, order)
    downsets, pending = {0}, [0]
    while pending:
        downset = pending.pop()
        for i, bits in enumerate(after):
            larger = downset | 1 << i
            if larger not in downsets and not bits & ~downset:
                downsets.add(larger)
                pending.append(larger)
                if len(downsets) > most:
                    return None
    return sorted(downsets, key=lambda downset: (downset.bit_count(), downset))


def _after(problem: StageProblem, order: Sequence[int]) -> list[int]:
    place = {layer: i for i, layer in enumerate(order)}
    after = [0] * len(order)
    for a, b in problem.edges:
        after[place[a]] |= 1 << place[b]
    return after


def suffixes(order: Sequence[int]) -> list[int]:
    """The downsets of one order of the layers."""
    count = len(order)
    return [((1 << k) - 1) << (count - k) for k in range(count + 1)]


def cheapest_cuts(
    problem: StageProblem, order: Sequence[int], downsets: Sequence[int], count: int
) -> list[int]:
    """About `count` of the downsets: of those of each size, the ones with the fewest bytes between
    them and the other layers; and those of the order."""
    place = {layer: i for i, layer in enumerate(order)}
    edges = [(1 << place[a], 1 << place[b], size) for (a, b), size in problem.edges.items()]
    by_size: dict[int, list[tuple[float, int]]] = {}
    for downset in downsets:
        cut = sum(size for a, b, size in edges if downset & b and not downset & a)
        by_size.setdefault(downset.bit_count(), []).append((cut, downset))
    share = max(1, count // len(by_size))
    kept = {downset for rows in by_size.values() for _, downset in sorted(rows)[:share]}
    return sorted(kept | {*suffixes(order)}, key=lambda downset: (downset.bit_count(), downset))


def as_array(downsets: Sequence[int], layers: int) -> np.ndarray:
    """(downsets, layers) 1 for the layers of each."""
    rows = [[downset >> i & 1 for i in range(layers)] for downset in downsets]
    return np.array(rows, np.uint8)


def members(downset: int, rest: int, order: Sequence[int]) -> tuple[int, ...]:
    """The layers of a downset that are not in another, in order."""
    return tuple(layer for i, layer in enumerate(order) if (downset & ~rest) >> i & 1)
