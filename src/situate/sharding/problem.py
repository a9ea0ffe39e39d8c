"""Problems in which each op takes one of several strategies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from situate.errors import SituateError

FORBIDDEN = 10**17
"""Costs from this one on mark strategies that cannot stand together."""


@dataclass(frozen=True, eq=False)
class ShardingProblem:
    """One strategy is chosen for each op (M. Moffitt and P. Fegade, ASPLOS 2025 contest).

    The cost is the sum over ops and over edges. A strategy needs memory during the op's interval,
    and at no time may all strategies together need more than the limit.

    Attributes:
        name: of the problem.
        costs: by op, an int64 array with the cost of each strategy.
        usages: by op, an int64 array with the bytes of each strategy.
        intervals: (n, 2) times; an op's strategy is in memory from the first until the second.
        edges: pairs of ops, the lower number first, each pair once.
        tables: by edge, an int64 array (strategies of the first, strategies of the second).
        limit: bytes.
    """

    name: str
    costs: Sequence[np.ndarray]
    usages: Sequence[np.ndarray]
    intervals: np.ndarray
    edges: Sequence[tuple[int, int]]
    tables: Sequence[np.ndarray]
    limit: int

    def cost(self, strategies: Sequence[int]) -> int:
        """The cost of one strategy for each op, exactly.

        Raises:
            SituateError: not a strategy for each op.
        """
        self._check(strategies)
        # Python's whole numbers: sums of forbidden costs exceed 64 bits.
        ops = sum(int(cost[x]) for cost, x in zip(self.costs, strategies, strict=True))
        pairs = zip(self.edges, self.tables, strict=True)
        return ops + sum(int(table[strategies[a], strategies[b]]) for (a, b), table in pairs)

    def peak(self, strategies: Sequence[int]) -> int:
        """The most bytes that the strategies need at any time.

        Raises:
            SituateError: not a strategy for each op.
        """
        self._check(strategies)
        changes: dict[int, int] = {}
        for usage, (begin, end), x in zip(self.usages, self.intervals, strategies, strict=True):
            if begin < end:
                changes[int(begin)] = changes.get(int(begin), 0) + int(usage[x])
                changes[int(end)] = changes.get(int(end), 0) - int(usage[x])
        peak = load = 0
        for time in sorted(changes):
            load += changes[time]
            peak = max(peak, load)
        return peak

    def _check(self, strategies: Sequence[int]) -> None:
        if len(strategies) != len(self.costs):
            raise SituateError(
                f"{self.name}: {len(strategies)} strategies for {len(self.costs)} ops"
            )
        for op, (x, cost) in enumerate(zip(strategies, self.costs, strict=True)):
            if not 0 <= x < len(cost):
                raise SituateError(f"{self.name}: op {op} has no strategy {x}")
