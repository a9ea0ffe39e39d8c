"""A tensor that crosses devices shares memory only with what everybody has surely read before."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from situate.runtime.memory import ALIGNMENT
from situate.runtime.programs.slots import Crossing, offsets, ran_before


class Case:
    """Ops in a random order on random devices, of which each reads a few earlier ones."""

    def __init__(self, seed: int, ops: int = 24, devices: int = 3) -> None:
        random = np.random.default_rng(seed)
        self.placement = np.append(np.arange(devices), random.integers(devices, size=ops - devices))
        self.placement = self.placement.astype(np.int32)
        self.order = random.permutation(ops).tolist()
        self.rank = {op: i for i, op in enumerate(self.order)}
        self.reads = {
            op: {self.order[j] for j in random.integers(i, size=2)} if i else set()
            for i, op in enumerate(self.order)
        }
        self.sizes = random.integers(1, 400, size=ops).tolist()
        self.senders = {
            op: [s for s in sources if self.placement[s] != self.placement[op]]
            for op, sources in self.reads.items()
        }
        self.clock = ran_before(self.placement, self.order, self.senders)

    def readers(self, op: int) -> list[int]:
        """The ops that receive what an op sends."""
        return [reader for reader, senders in self.senders.items() if op in senders]

    def position(self, op: int) -> int:
        """The number of ops of its device that have run when it has."""
        device = self.placement[op]
        same = [o for o in self.order if self.placement[o] == device]
        return same.index(op) + 1

    def crossings(self) -> list[Crossing]:
        found = []
        for op in range(len(self.order)):
            last: dict[int, int] = {}
            for reader in self.readers(op):
                device = int(self.placement[reader])
                last[device] = max(last.get(device, 0), self.position(reader))
            if last:
                found.append(Crossing(self.sizes[op], op, last))
        return found

    def before(self) -> dict[int, set[int]]:
        """By op, those that have ended when it computes: followed step by step."""
        found: dict[int, set[int]] = {}
        previous: dict[int, int] = {}
        for op in self.order:
            device = int(self.placement[op])
            direct = [*self.senders[op], *([previous[device]] if device in previous else [])]
            found[op] = {*direct, *(o for d in direct for o in found[d])}
            previous[device] = op
        return found


@pytest.fixture(params=range(20))
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


def test_ran_before_counts_what_has_surely_ended(case: Case) -> None:
    for op, ended in case.before().items():
        counts = [sum(case.placement[o] == d for o in ended) for d in range(3)]
        assert case.clock[op].tolist() == counts


def test_memory_is_shared_only_with_what_was_read(case: Case) -> None:
    crossings = case.crossings()
    begin, sizes = offsets(crossings, case.order, case.clock)
    before = case.before()
    for (i, one), (j, other) in combinations(enumerate(crossings), 2):
        apart = begin[i] + one.nbytes <= begin[j] or begin[j] + other.nbytes <= begin[i]
        first, second = sorted((one, other), key=lambda c: case.rank[c.sender])
        assert apart or set(case.readers(first.sender)) <= before[second.sender]
    assert all(at % ALIGNMENT == 0 for at in begin)
    for crossing, at in zip(crossings, begin, strict=True):
        home = crossing.home
        assert home == min(case.placement[reader] for reader in case.readers(crossing.sender))
        assert sum(sizes[:home]) <= at
        assert at + crossing.nbytes <= sum(sizes[: home + 1])


def test_memory_is_shared_at_all() -> None:
    cases = [Case(seed) for seed in range(20)]
    used = sum(sum(offsets(case.crossings(), case.order, case.clock)[1]) for case in cases)
    apart = sum(-(-c.nbytes // ALIGNMENT) * ALIGNMENT for case in cases for c in case.crossings())
    assert used < 0.95 * apart


def test_nothing_crosses() -> None:
    clock = ran_before(np.zeros(2, np.int32), [0, 1], {})
    assert clock.tolist() == [[0], [1]]
    assert offsets([], [0, 1], clock) == ([], [0])
