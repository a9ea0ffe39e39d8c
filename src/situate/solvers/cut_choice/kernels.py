"""The least seconds of the ops by which parts exchange a tensor; docs/bounds.md derives them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from situate.data.arrays import Floats
from situate.data.graph import Op
from situate.data.letter_graph import SUM, WHOLE
from situate.data.problem import Problem
from situate.data.roofline import estimated_seconds

Parts = tuple[int, int]
"""The least and the largest of a range of numbers of parts."""

Form = tuple[int, Parts]
"""A class, `WHOLE` or `SUM`, with its numbers of parts. A whole that several parts read has their
numbers."""

Cost = tuple[float, float]
"""Seconds that ops add to the weighted load, and to a path through the largest parts."""

SLICE, ADD, CAT = range(3)

KINDS = ("aten.clone", "aten.add", "aten.cat")
"""A slice is a copy of a view."""

LARGE = 2**40
"""Bytes by which the seconds of a byte are measured."""


class Kernels:
    """Slices, sums and concatenations on the devices of a problem.

    Args:
        weight: (d,) weights of the devices in the load.
    """

    def __init__(self, problem: Problem, weight: Floats) -> None:
        devices = problem.cluster.devices
        ops = [Op("", kind=kind, traffic=nbytes) for kind in KINDS for nbytes in (1, LARGE)]
        # Seconds of 1 and of `LARGE` bytes: their difference is the rate, the rest a launch.
        small, large = estimated_seconds(ops, devices).reshape(3, 2, -1).transpose(1, 0, 2)
        # (kinds, devices): the kinds differ by the classes of ops that they belong to.
        self._byte = (large - small) / (LARGE - 1)
        self._launch = np.maximum(0, small - self._byte) * (1 - 1e-9)
        self._weight = weight
        self.ways = lru_cache(maxsize=None)(self._ways)

    def _ways(self, source: Form, target: Form, nbytes: int, is_direct: bool) -> tuple[Cost, ...]:
        """The ways to turn a tensor from one form into another; none if that cannot be.

        Args:
            is_direct: False if a view between both may be of the whole tensor.
        """
        have, want = source[0], target[0]
        if have == want == WHOLE or source == target:
            return ((0.0, 0.0),)
        if want == SUM or have == want:
            return ()
        direct = self._direct(source, target, nbytes)
        if is_direct or have == WHOLE:
            return (direct,)
        return direct, self._through_whole(source, target, nbytes)

    def _direct(self, source: Form, target: Form, nbytes: int) -> Cost:
        # Slices and concatenations read and write each byte; additions read two and write one.
        (have, (k, most_k)), (want, (n, most_n)) = source, target
        if have == WHOLE:
            return self._sliced(n, most_n, nbytes)
        if have != SUM:
            if want == WHOLE:
                return n * self._load(CAT, 1, 2 * nbytes), self._path(CAT, 2 * nbytes)
            # Each of k parts has a slice for each of n.
            load = self._load(SLICE, k * n, 2 * nbytes) + self._load(CAT, n, 2 * nbytes)
            path = self._path(SLICE, 2 * nbytes / most_k / most_n)
            return load, path + self._path(CAT, 2 * nbytes / most_n)
        if want != WHOLE:
            return self._scattered(k, n, most_n, nbytes)
        # Each of n readers adds all partial results, or k parts add theirs and n readers join them.
        total = (n * (k - 1) * self._load(ADD, 1, 3 * nbytes), self._path(ADD, 3 * nbytes))
        if n == 1:
            return total
        load, path = self._scattered(k, k, most_k, nbytes)
        gathered = load + n * self._load(CAT, 1, 2 * nbytes), path + self._path(CAT, 2 * nbytes)
        # Small tensors are not scattered.
        return min(total[0], gathered[0]), min(total[1], gathered[1])

    def _through_whole(self, source: Form, target: Form, nbytes: int) -> Cost:
        (have, (k, _)), (want, (n, most_n)) = source, target
        # On one device all partial results add up, or all parts join.
        kind, count, moved = (ADD, k - 1, 3 * nbytes) if have == SUM else (CAT, 1, 2 * nbytes)
        load, path = count * self._load(kind, 1, moved), self._path(kind, moved)
        if want == WHOLE:
            return load, path
        load_of_slices, path_of_slice = self._sliced(n, most_n, nbytes)
        return load + load_of_slices, path + path_of_slice

    def _sliced(self, n: int, most_n: int, nbytes: int) -> Cost:
        return self._load(SLICE, n, 2 * nbytes), self._path(SLICE, 2 * nbytes / most_n)

    def _scattered(self, k: int, n: int, most_n: int, nbytes: int) -> Cost:
        """Slices of each of k partial results, and k - 1 additions in each of n parts."""
        load = k * self._load(SLICE, n, 2 * nbytes) + (k - 1) * self._load(ADD, n, 3 * nbytes)
        return load, self._path(SLICE, 2 * nbytes / most_n) + self._path(ADD, 3 * nbytes / most_n)

    def _load(self, kind: int, count: int, nbytes: float) -> float:
        """The least weighted seconds of so many ops that move so many bytes together."""
        launch = float((self._weight * self._launch[kind]).min())
        one = self._weight * (self._launch[kind] + self._byte[kind] * nbytes)
        # The least over devices is concave in the bytes, so the most unequal parts cost least.
        return (count - 1) * launch + float(one.min())

    def _path(self, kind: int, nbytes: float) -> float:
        return float((self._launch[kind] + self._byte[kind] * nbytes).min())
