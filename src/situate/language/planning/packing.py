"""Packing of experts into the room beside other tensors: knapsacks of a few kinds of items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def spans(values: Floats, ends: slice = slice(None)) -> Floats:
    """(n + 1, ends) sums of values from the first index up to the second."""
    # sums[j] - sums[i] is the sum of values i to j - 1.
    sums = np.concatenate([[0.0], np.cumsum(values)])
    differences: Floats = sums[None, ends] - sums[:, None]
    return differences


class Kind(NamedTuple):
    """Layers whose experts are alike.

    Attributes:
        size: bytes of the experts of one layer.
        saving: seconds that they save on the GPU.
        members: (layers + 1, ends) layers of the kind in each span.
    """

    size: int
    saving: float
    members: Floats


def savings_of_spans(
    sizes: Ints, savings: Floats, free: Floats, ends: slice, whole: bool
) -> tuple[Floats, bool]:
    """Seconds saved by the experts that fit into each span of layers, and whether that is proved.

    Args:
        sizes: (layers,) bytes of experts, 0 in a dense layer.
        savings: (layers,) seconds that they save on the GPU.
        free: (layers + 1, ends) bytes beside the other tensors of a span.
        ends: of the spans.
        whole: experts are not divided. Otherwise the result is an upper bound.
    """
    kinds = list(_kinds(sizes, savings, ends))
    if not whole or len(kinds) != 2:
        return _filled(kinds, free, whole), not whole or len(kinds) < 2
    # The rarer kind is counted out, the other one fills the room.
    rare, frequent = sorted(kinds, key=lambda kind: kind.members.max())
    best = np.zeros_like(free)
    most = min(int(rare.members.max()), int(max(free.max(), 0.0) // rare.size))
    for count in range(most + 1):
        rest = free - count * rare.size
        total = count * rare.saving + _filled([frequent], rest, True)
        valid = (rest >= 0) & (count <= rare.members)
        # `where` leaves spans out that have no room or too few of the rarer kind.
        np.maximum(best, total, out=best, where=valid)
    return best, True


def _kinds(sizes: Ints, savings: Floats, ends: slice) -> Iterator[Kind]:
    """Layers with experts of one size and saving.

    Savings that differ by rounding alone are one; a saving below zero is none.
    """
    groups: dict[tuple[int, float], list[int]] = {}
    for i, (size, saving) in enumerate(zip(sizes.tolist(), savings.tolist(), strict=True)):
        if size and saving > 0:
            groups.setdefault((size, float(f"{saving:.9e}")), []).append(i)
    for (size, _), members in groups.items():
        flags = np.zeros(len(sizes))
        flags[members] = 1.0
        counts = np.maximum(spans(flags, ends), 0.0)
        yield Kind(size, float(max(savings[members])), counts)


def _filled(kinds: Sequence[Kind], free: Floats, whole: bool) -> Floats:
    """Seconds saved by filling the room with the densest savings first."""
    saved, rest = np.zeros_like(free), np.maximum(free, 0.0)
    for kind in sorted(kinds, key=lambda kind: -kind.saving / kind.size):
        fitting = rest / kind.size
        number = np.minimum(np.floor(fitting) if whole else fitting, kind.members)
        saved += number * kind.saving
        rest -= number * kind.size
    return saved


def knapsack(sizes: Sequence[int], values: Sequence[float], room: float) -> list[bool]:
    """The items of the largest total value that fit, exactly for up to three kinds of items.

    Of equal items it takes the later ones.
    """
    kinds: dict[tuple[int, float], list[int]] = {}
    for i, (size, value) in enumerate(zip(sizes, values, strict=True)):
        if value > 0:
            kinds.setdefault((size, float(f"{value:.9e}")), []).append(i)
    order = sorted(kinds, key=lambda kind: -kind[1] / kind[0])
    counts = _counts(order, [len(kinds[kind]) for kind in order], room)
    selection = [False] * len(sizes)
    for kind, count in zip(order, counts, strict=True):
        for i in kinds[kind][len(kinds[kind]) - count :]:
            selection[i] = True
    return selection


def _counts(
    kinds: Sequence[tuple[int, float]], most: Sequence[int], room: float
) -> tuple[int, ...]:
    """The number of each kind to take; beyond three kinds, the densest first."""
    if not kinds:
        return ()
    size, value = kinds[0]
    largest = min(most[0], int(max(room, 0.0) // size))
    if len(kinds) == 1 or len(kinds) > 3:
        return (largest, *_counts(kinds[1:], most[1:], room - largest * size))
    best, total = (0,) * len(kinds), -1.0
    for count in range(largest, -1, -1):
        rest = _counts(kinds[1:], most[1:], room - count * size)
        saved = count * value + sum(n * k[1] for n, k in zip(rest, kinds[1:], strict=True))
        if saved > total:
            best, total = (count, *rest), saved
    return best
