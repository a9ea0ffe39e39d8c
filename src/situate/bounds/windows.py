"""Windows: ops that cannot run early or late have the rest of the step to share."""

from __future__ import annotations

from dataclasses import dataclass
from operator import add

import numpy as np

from situate.bounds.load import Load
from situate.bounds.rounding import rounding
from situate.data.arrays import Floats
from situate.data.problem import Problem

WINDOW_STARTS = 64
"""Windows begin at so many different times."""


@dataclass(frozen=True)
class Paths:
    """Longest paths, every op at its fastest and every transfer free.

    Attributes:
        head, tail: (n,) seconds before an op begins, and after it has ended.
        longest: seconds of the critical path.
    """

    head: Floats
    tail: Floats
    longest: float

    @classmethod
    def of(cls, problem: Problem) -> Paths:
        """Those of a problem's graph."""
        seconds, after = problem.fastest.tolist(), _after(problem)
        head, tail = [0.0] * problem.n, [0.0] * problem.n
        for op in problem.graph.order:
            end = head[op] + seconds[op]
            for consumer in after[op]:
                # Final before it is read: `order` visits an op after all that it reads.
                head[consumer] = max(head[consumer], end)
        for op in reversed(problem.graph.order):
            rest = (seconds[consumer] + tail[consumer] for consumer in after[op])
            tail[op] = max(rest, default=0.0)
        longest = max(map(add, seconds, tail))
        return cls(np.array(head), np.array(tail), longest)


def _after(problem: Problem) -> list[list[int]]:
    """The consumers of every op's outputs."""
    after: list[list[int]] = [[] for _ in range(problem.n)]
    start, consumers = problem.consumer_start.tolist(), problem.consumers.tolist()
    for tensor, producer in enumerate(problem.producer.tolist()):
        after[producer] += consumers[start[tensor] : start[tensor + 1]]
    return after


@np.errstate(over="ignore", invalid="ignore")  # endless times bound nothing
def least_window(problem: Problem, paths: Paths, load: Load) -> float:
    """Seconds of a step by its fullest window: the ops with a head of a at least and a tail of b at
    least must all run after a and before b is left, so a step takes a + b and the least load of
    these ops at the prices of `load`.
    """
    allowed = problem.allowed[problem.unit]
    seconds = np.where(allowed, problem.seconds, np.inf)
    cost = (load.weight * seconds + load.price * problem.persistent[:, None]).min(axis=1)
    paid = float((load.price * problem.capacity).sum())
    paid += rounding(problem) * paid
    # Sorted by falling tail, the ops of a window with a tail of at least b are a prefix: one
    # cumulative sum gives the load of every b at once.
    falling = np.argsort(-paths.tail, kind="stable")
    head, tail, cost = paths.head[falling], paths.tail[falling], cost[falling]
    longest = 0.0
    # Quantiles of heads in place of all of them: fewer windows bound less, and never wrongly.
    for begin in np.unique(np.quantile(head, np.linspace(0, 1, WINDOW_STARTS), method="lower")):
        inside = head >= begin
        # (m,) of the m ops with such a head: a, load of the prefix, b.
        windows = begin + cost[inside].cumsum() - paid + tail[inside]
        longest = max(longest, float(windows[np.isfinite(windows)].max(initial=0.0)))
    return longest
