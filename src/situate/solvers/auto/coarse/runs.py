"""Runs: contiguous parts of a line of ops, which are contracted without making cycles."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Bools, Floats, Ints, Order
from situate.data.problem import Problem
from situate.data.topology import edge_producers, edge_tensors, places

MAX_RELATIVE_LOAD = 1.5
"""Largest ratio of a run's seconds, and of its persistent bytes, to the average run's."""

MAX_ROUNDS = 40
"""Largest number of rounds of merges; each merges up to half of the runs."""

TIE_BREAKS = 1009
"""Number of factors that distinguish equal weights, so that of equal neighbours many merge at
once."""


def op_line(problem: Problem) -> Order:
    """(n,) a topological order, depth first.

    Ops that share a device with others of their unit come first if they have no inputs, such as
    parameters, and last if they have no readers, such as updates. They would divide runs.
    """
    inputs = np.bincount(problem.consumers, minlength=problem.n)
    readers = np.bincount(edge_producers(problem), minlength=problem.n)
    shared = in_shared_units(problem)
    zone = np.where(shared & (inputs == 0), 0, np.where(shared & (readers == 0), 2, 1))
    line = problem.depth_first
    return line[np.argsort(zone[line], kind="stable")]


def in_shared_units(problem: Problem) -> Bools:
    """(n,) True for ops of units of several ops."""
    return np.asarray(np.bincount(problem.unit)[problem.unit] > 1)


def run_labels(problem: Problem, line: Order, count: int, kind: Ints) -> Ints:
    """(n,) the run of each op; runs are numbered along the line, so edges lead to larger numbers.

    Neighbouring runs merge by heavy edges, see `heavy_edge`, until there are `count` or no pair may
    merge. Ops of shared units stay alone.

    Args:
        line: (n,) a topological order.
        kind: (n,) only ops of equal kind share a run.
    """
    merging = _Merging(problem, line, count, kind)
    for _ in range(MAX_ROUNDS):
        if not merging.merge(count):
            break
    label = np.empty(problem.n, np.int64)
    label[line] = merging.run
    return label


def contiguous_runs(line: Order, keys: Ints) -> Ints:
    """(n,) the run of each op: neighbours on the line with equal keys (k, n) share one."""
    ordered = keys[:, line]
    begins = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    run = np.empty(len(line), np.int64)
    run[line] = np.append(0, np.cumsum(begins))
    return run


def device_sets(problem: Problem) -> Ints:
    """(n,) a number for each set of devices that ops may run on."""
    if problem.runnable.all():
        return np.zeros(problem.n, np.int64)
    _, number = np.unique(problem.runnable, axis=0, return_inverse=True)
    return np.asarray(number.reshape(-1)[problem.unit])


class _Merging:
    """Runs of a line, all of one op at first.

    Attributes:
        run: (n,) the run at each place of the line.
    """

    def __init__(self, problem: Problem, line: Order, count: int, kind: Ints) -> None:
        place = places(line)
        self._from, self._to = place[edge_producers(problem)], place[problem.consumers]
        self._bytes = problem.size[edge_tensors(problem)].astype(np.float64)
        seconds = np.where(np.isfinite(problem.seconds), problem.seconds, 0).mean(axis=1)
        # (2, n) seconds and bytes as shares of the largest load that a run may have.
        loads = np.stack((seconds, problem.persistent)).astype(np.float64)[:, line]
        limit = MAX_RELATIVE_LOAD * loads.sum(axis=1, keepdims=True) / count
        self._load = loads / np.maximum(limit, 1e-300)
        self._kind, self._alone = kind[line], in_shared_units(problem)[line]
        self.run = np.arange(problem.n)

    def merge(self, count: int) -> bool:
        """Merge each pair of neighbours that weighs more than the pairs beside it; False if there
        is none or `count` runs are left."""
        weight = self._weights()
        padded = np.concatenate(([-1.0], weight, [-1.0]))
        # Of equal neighbours the first pair counts, so no run is in two pairs.
        first = np.flatnonzero((weight > 0) & (weight > padded[:-2]) & (weight >= padded[2:]))
        surplus = max(0, self._load.shape[1] - count)
        first = first[np.argsort(-weight[first], kind="stable")[:surplus]]
        if not len(first):
            return False
        begins = np.ones(self._load.shape[1], np.bool_)
        begins[first + 1] = False
        self._load = np.add.reduceat(self._load, np.flatnonzero(begins), axis=1)
        self._kind, self._alone = self._kind[begins], self._alone[begins]
        self.run = (np.cumsum(begins) - 1)[self.run]
        return True

    def _weights(self) -> Floats:
        """(runs - 1,) the weight of each run with the next: bytes squared over the product of their
        seconds; 0 where they may not merge."""
        runs = self._load.shape[1]
        near = self.run[self._to] == self.run[self._from] + 1
        # One more byte, so that small neighbours without an edge merge at last.
        flow = 1 + np.bincount(self.run[self._from[near]], self._bytes[near], minlength=runs)[:-1]
        tiny = 1e-9 / runs
        seconds = (self._load[0, :-1] + tiny) * (self._load[0, 1:] + tiny)
        tie_break = 1 + 1e-6 * (np.arange(runs - 1) * 619 % TIE_BREAKS)
        # A load is a part of the largest one allowed.
        mergeable = (
            (self._load[:, :-1] + self._load[:, 1:] <= 1).all(axis=0)
            & (self._kind[:-1] == self._kind[1:])
            & ~self._alone[:-1]
            & ~self._alone[1:]
        )
        return np.where(mergeable, flow**2 / seconds * tie_break, 0.0)
