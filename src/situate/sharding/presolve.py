"""A sharding problem in fewer ops: those whose strategies must agree are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from situate._core.sharding import ShardingArrays, needed
from situate.sharding.problem import FORBIDDEN, ShardingProblem

Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Reduction:
    """A problem of groups of ops.

    Attributes:
        arrays: the problem for the core.
        group: by op, its group.
        strategies: by op, its strategy for each strategy of the group.
    """

    arrays: ShardingArrays
    group: Sequence[int]
    strategies: Sequence[np.ndarray]

    def expand(self, chosen: np.ndarray) -> tuple[int, ...]:
        """The strategies of all ops for those of the groups."""
        pairs = zip(self.strategies, self.group, strict=True)
        return tuple(int(own[chosen[group]]) for own, group in pairs)


def reduce_problem(problem: ShardingProblem) -> Reduction:
    """The problem without strategies that no best plan needs, and without edges that only forbid.

    A strategy goes that stands in no plan, and one that another dominates: that costs no more,
    whatever the neighbours choose, and uses no more memory. A table in which each strategy of one
    op goes with exactly one of the other makes the two ops one group. A table that is a sum of a
    number for each row and for each column is no edge.
    """
    forbidding = [k for k, table in enumerate(problem.tables) if table.max() >= FORBIDDEN]
    possible = _possible(problem, forbidding)
    group, strategies = _groups(problem, forbidding, possible)
    costs, tables = _sums(problem, group, strategies)
    keep = [_affordable(cost) for cost in costs]
    reduction, rests, edges = _restrict(problem, group, strategies, costs, tables, keep)
    keep = _needed(reduction.arrays, rests)
    return _restrict(problem, group, reduction.strategies, rests, edges, keep)[0]


def _restrict(
    problem: ShardingProblem,
    group: Sequence[int],
    strategies: Sequence[np.ndarray],
    costs: Sequence[np.ndarray],
    tables: dict[Pair, np.ndarray],
    keep: Sequence[np.ndarray],
) -> tuple[Reduction, Sequence[np.ndarray], dict[Pair, np.ndarray]]:
    """The problem of the strategies to keep, with its costs and tables."""
    strategies = [own[keep[g]] for own, g in zip(strategies, group, strict=True)]
    costs = [cost[rows] for cost, rows in zip(costs, keep, strict=True)]
    tables = _edges(tables, costs, keep)
    arrays = _arrays(problem, group, strategies, costs, tables)
    return Reduction(arrays, group, strategies), costs, tables


def _needed(arrays: ShardingArrays, costs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """By group, the strategies that some best plan may need."""
    # The core's flags are of all groups' strategies end to end.
    ends = np.cumsum([len(cost) for cost in costs])[:-1]
    return [np.flatnonzero(part) for part in np.split(needed(arrays), ends)]


def _edges(
    tables: dict[Pair, np.ndarray], costs: Sequence[np.ndarray], keep: Sequence[np.ndarray]
) -> dict[Pair, np.ndarray]:
    """The tables of the strategies to keep, without those that are sums."""
    parts = {(a, b): table[np.ix_(keep[a], keep[b])] for (a, b), table in tables.items()}
    rests = {(a, b): _without_sums(part, costs[a], costs[b]) for (a, b), part in parts.items()}
    return {pair: rest for pair, rest in rests.items() if rest is not None}


def _possible(problem: ShardingProblem, forbidding: Sequence[int]) -> list[np.ndarray]:
    """By op, True for strategies that go with some strategy of each neighbour (arc consistency)."""
    possible = [_affordable_mask(cost) for cost in problem.costs]
    edges_of: dict[int, list[int]] = {}
    for k in forbidding:
        for op in problem.edges[k]:
            edges_of.setdefault(op, []).append(k)
    pending = dict.fromkeys(forbidding)
    while pending:
        k, _ = pending.popitem()
        a, b = problem.edges[k]
        allowed = problem.tables[k] < FORBIDDEN
        for op, rows in ((a, allowed[:, possible[b]]), (b, allowed[possible[a]].T)):
            fewer = possible[op] & rows.any(1)
            # Where nothing fits, nothing is taken away: the search then shows it.
            if fewer.any() and not (fewer == possible[op]).all():
                possible[op] = fewer
                pending |= dict.fromkeys(edges_of[op])
    return possible


def _affordable_mask(cost: np.ndarray) -> np.ndarray:
    mask: np.ndarray = cost < FORBIDDEN
    return mask if mask.any() else np.ones(len(cost), bool)


def _affordable(cost: np.ndarray) -> np.ndarray:
    """Numbers of strategies without a forbidden cost; all if there is none."""
    return np.flatnonzero(_affordable_mask(cost))


def _groups(
    problem: ShardingProblem, forbidding: Sequence[int], possible: list[np.ndarray]
) -> tuple[list[int], list[np.ndarray]]:
    """Groups of ops that tables tie one to one, and the strategies of each op by its group's."""
    ties: dict[int, list[tuple[int, np.ndarray]]] = {}
    for k in forbidding:
        a, b = problem.edges[k]
        # (strategies of a, strategies of b) True where both can be together.
        allowed = (problem.tables[k] < FORBIDDEN) & possible[a][:, None] & possible[b]
        # One partner for each strategy, both ways: a choice for one op is a choice for the other.
        if (allowed.sum(1)[possible[a]] == 1).all() and (allowed.sum(0)[possible[b]] == 1).all():
            ties.setdefault(a, []).append((b, allowed.argmax(1)))
            ties.setdefault(b, []).append((a, allowed.argmax(0)))
    group = [-1] * len(problem.costs)
    strategies = [np.flatnonzero(mask) for mask in possible]
    count = 0
    for first in range(len(group)):
        if group[first] >= 0:
            continue
        group[first], pending = count, [first]
        while pending:
            op = pending.pop()
            for other, partner in ties.get(op, ()):
                if group[other] < 0:
                    group[other] = count
                    # The other op's strategy in the order of the group's.
                    strategies[other] = partner[strategies[op]]
                    pending.append(other)
        count += 1
    return group, strategies


def _sums(
    problem: ShardingProblem, group: Sequence[int], strategies: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], dict[Pair, np.ndarray]]:
    """The costs of groups, and the tables of pairs of groups, the lower number first."""
    costs: list[np.ndarray] = []
    for cost, g, own in zip(problem.costs, group, strategies, strict=True):
        # Groups are numbered by their first op, so an unknown one is the next.
        if g == len(costs):
            costs.append(np.zeros(len(own)))
        costs[g] += cost[own]
    tables: dict[Pair, np.ndarray] = {}
    for (a, b), table in zip(problem.edges, problem.tables, strict=True):
        if group[a] == group[b]:
            # Inside a group both ends follow one choice, so the table is a cost of the group.
            costs[group[a]] += table[strategies[a], strategies[b]]
            continue
        if group[a] > group[b]:
            a, b, table = b, a, table.T
        part = table[np.ix_(strategies[a], strategies[b])].astype(float)
        pair = group[a], group[b]
        tables[pair] = tables[pair] + part if pair in tables else part
    return costs, tables


def _without_sums(table: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray | None:
    """The table, or None if it is a sum of costs of either op, which are then added to theirs."""
    # In a sum, a row differs from the first by the same in every column.
    differences = table - table[:1]
    if not (differences == differences[:, :1]).all():
        return table
    rows += differences[:, 0]
    columns += table[0]
    return None


def _arrays(
    problem: ShardingProblem,
    group: Sequence[int],
    strategies: Sequence[np.ndarray],
    costs: Sequence[np.ndarray],
    edges: dict[Pair, np.ndarray],
) -> ShardingArrays:
    usages = _usages(problem, group, strategies)
    pairs = np.array([*edges], np.int64).reshape(-1, 2)
    # A part is an interval in which a group uses memory: its begin, its end, and its usages.
    spans = np.array([span for parts in usages for span in parts], np.int64).reshape(-1, 2)
    numbers = [usage for parts in usages for usage in parts.values()]
    return ShardingArrays(
        first=_starts([len(cost) for cost in costs]),
        cost=np.concatenate(costs),
        part=_starts([len(parts) for parts in usages]),
        begin=np.ascontiguousarray(spans[:, 0]),
        end=np.ascontiguousarray(spans[:, 1]),
        # The empty array gives the type if there is no part.
        usage=np.concatenate([np.zeros(0, np.int64), *numbers]),
        source=np.ascontiguousarray(pairs[:, 0]),
        target=np.ascontiguousarray(pairs[:, 1]),
        table=_starts([table.size for table in edges.values()]),
        pair_cost=np.concatenate([np.zeros(0), *(table.ravel() for table in edges.values())]),
        limit=problem.limit,
    )


def _usages(
    problem: ShardingProblem, group: Sequence[int], strategies: Sequence[np.ndarray]
) -> list[dict[Pair, np.ndarray]]:
    """By group, the bytes of its strategies in each interval."""
    usages: list[dict[Pair, np.ndarray]] = [{} for _ in range(max(group) + 1)]
    for g, own, usage, span in zip(
        group, strategies, problem.usages, problem.intervals.tolist(), strict=True
    ):
        if span[0] < span[1] and usage.any():
            key = (span[0], span[1])
            usages[g][key] = usages[g].get(key, 0) + usage[own]
    return usages


def _starts(sizes: Sequence[int]) -> np.ndarray:
    """The sums of sizes before each, and the sum of all."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
