"""The search for strategies of least cost, with a lower bound.

The bound is the dual of a Lagrangian relaxation: memory has a price at each time, and the rest is
bounded by sequential tree-reweighted message passing (TRW-S, V. Kolmogorov, IEEE TPAMI 28, 2006).
Branching raises it where that stands still. The strategies that the messages favour are the starts
of a local search, in which the ops of a random forest choose anew by dynamic programming.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from situate._core.sharding import ShardingSolver
from situate.errors import SituateError
from situate.sharding.presolve import reduce_problem
from situate.sharding.problem import FORBIDDEN, ShardingProblem

ROUNDING = 1e-9
"""Relative error of the sums in a bound."""


@dataclass(frozen=True)
class ShardingPlan:
    """Strategies of a problem's ops, and a bound of their cost.

    Attributes:
        strategies: by op, the number of its strategy.
        cost: of the strategies.
        peak: bytes in memory at most.
        limit: bytes that may be.
        bound: no strategies within the limit cost less.
        rounds: of the search.
        seconds: of the search.
        interrupted: by Ctrl-C.
    """

    strategies: tuple[int, ...]
    cost: int
    peak: int
    limit: int
    bound: int
    rounds: int
    seconds: float
    interrupted: bool = False

    @property
    def feasible(self) -> bool:
        """True if the strategies fit in memory and may stand together."""
        return self.peak <= self.limit and self.cost < FORBIDDEN

    @property
    def gap(self) -> float:
        """The difference of cost and bound as a fraction of the cost; infinite if infeasible."""
        if not self.feasible:
            return math.inf
        return (self.cost - self.bound) / abs(self.cost) if self.cost != self.bound else 0.0


def solve_sharding(
    problem: ShardingProblem,
    *,
    time_limit: float | None = 60.0,
    rounds: int | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> ShardingPlan:
    """The best strategies for a problem.

    Without a time limit, seed and rounds fix the plan at any number of threads. Ctrl-C ends the
    search with the best plan so far.

    Args:
        time_limit: seconds; None for no limit.
        rounds: of bounds and search; None for no limit.
        seed: of the search.
        threads: two work at most; None for two.

    Raises:
        SituateError: neither limit, or a negative one.
    """
    if time_limit is None and rounds is None:
        raise SituateError("time_limit: give it, or rounds")
    if (time_limit or 0) < 0 or (rounds or 0) < 0:
        raise SituateError("time_limit and rounds: must not be negative")
    begin, count, interrupted = time.monotonic(), 0, False
    reduction = reduce_problem(problem)
    solver = ShardingSolver(reduction.arrays, seed=seed)
    try:
        while rounds is None or count < rounds:
            remaining = math.inf if time_limit is None else begin + time_limit - time.monotonic()
            if remaining <= 0:
                break
            solver.round(two_threads=threads is None or threads > 1, seconds=remaining)
            count += 1
            if solver.excess == 0 and solver.value <= _bound(solver):
                break
    except KeyboardInterrupt:
        interrupted = True
    strategies = reduction.expand(solver.strategies())
    cost = problem.cost(strategies)
    bound = min(_bound(solver), cost) if solver.excess == 0 else _bound(solver)
    seconds = time.monotonic() - begin
    peak = problem.peak(strategies)
    return ShardingPlan(strategies, cost, peak, problem.limit, bound, count, seconds, interrupted)


def _bound(solver: ShardingSolver) -> int:
    """The bound, rounded up, as costs are whole numbers, after the error of its sums."""
    bound = solver.bound
    if not math.isfinite(bound):
        return -(2**63)
    return math.ceil(bound - ROUNDING * abs(bound))
