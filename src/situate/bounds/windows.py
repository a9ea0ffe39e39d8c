"""Windows: ops that cannot run early or late have the rest of the step to share."""

from __future__ import annotations

import numpy as np

from situate.bounds.load import Load
from situate.bounds.paths import Paths
from situate.bounds.rounding import rounding
from situate.data.arrays import Floats
from situate.data.problem import Problem

STARTS, STARTS_OF_OPS = (64, 512), 1_000_000
"""Windows begin at so many different times, at least and at most; between them the more, the fewer
ops there are: so many starts of ops in all."""


@np.errstate(over="ignore", invalid="ignore")  # endless times bound nothing
def least_window(problem: Problem, paths: Paths, load: Load) -> float:
    """Seconds of a step by its fullest window: the ops with a head of a at least and a tail of b at
    least must all run after a and before b is left, so a step takes a + b and the least load of
    these ops at the prices of `load`.
    """
    allowed = problem.allowed[problem.unit]
    # What may not run takes no time here: a weight of zero times endless seconds is no number.
    seconds = np.where(allowed, problem.seconds, 0.0)
    each = load.weight * seconds + load.price * problem.persistent[:, None]
    cost = np.where(allowed, each, np.inf).min(axis=1)
    paid = float((load.price * problem.capacity).sum())
    paid += rounding(problem) * paid
    return fullest_window(paths.head, paths.tail, cost, paid)


def fullest_window(heads: Floats, tails: Floats, cost: Floats, paid: float = 0.0) -> float:
    """Seconds of the fullest window of ops (n,), each of which has its head, its tail and its part
    of the load, of which `paid` is taken off."""
    # Sorted by falling tail, the ops of a window with a tail of at least b are a prefix: one
    # cumulative sum gives the load of every b at once.
    falling = np.argsort(-tails, kind="stable")
    falling = falling[cost[falling] > 0]
    if not len(falling):
        return 0.0
    head, tail, cost = heads[falling], tails[falling], cost[falling]
    longest = 0.0
    # Quantiles of heads in place of all of them: fewer windows bound less, and never wrongly.
    starts = np.clip(STARTS_OF_OPS // len(head), *STARTS)
    for begin in np.unique(np.quantile(head, np.linspace(0, 1, starts), method="lower")):
        inside = head >= begin
        # (m,) of the m ops with such a head: a, load of the prefix, b.
        windows = begin + cost[inside].cumsum() - paid + tail[inside]
        longest = max(longest, float(windows[np.isfinite(windows)].max(initial=0.0)))
    return longest
