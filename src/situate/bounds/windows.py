"""Windows: ops that can run neither early nor late share the rest of the step.

Narrow work is a window of ops that may run only on some devices.
"""

from __future__ import annotations

import numpy as np

from situate.bounds.alike import DeviceSets
from situate.bounds.load import Load
from situate.bounds.paths import Paths
from situate.bounds.rounding import rounding
from situate.data.arrays import Bools, Floats
from situate.data.problem import Problem

STARTS, STARTS_OF_OPS = (64, 512), 1_000_000
"""Least and most distinct beginnings of windows, and the product of beginnings and ops between."""


@np.errstate(over="ignore", invalid="ignore")  # endless times bound nothing
def least_window(problem: Problem, paths: Paths, load: Load) -> float:
    """Lower bound on a step's seconds by its fullest window.

    Ops with a head of at least a and a tail of at least b run after a and before b is left. So a
    step takes a + b and the least load of these ops at the prices of `load`.
    """
    allowed = problem.allowed[problem.unit]
    # Ops on forbidden devices take no time here: zero weight times infinite seconds is NaN.
    seconds = np.where(allowed, problem.seconds, 0.0)
    costs = load.weight * seconds + load.price * problem.persistent[:, None]
    cost = np.where(allowed, costs, np.inf).min(axis=1)
    memory_cost = float((load.price * problem.capacity).sum())
    memory_cost += rounding(problem) * memory_cost
    return _fullest_window(paths.head, paths.tail, cost, memory_cost)


def _fullest_window(heads: Floats, tails: Floats, cost: Floats, memory_cost: float = 0.0) -> float:
    """Seconds of the fullest window of ops (n,).

    Args:
        heads, tails: (n,) seconds before and after each op, at least.
        cost: (n,) each op's part of the load.
        memory_cost: subtracted from the load of a window.
    """
    # Sorted by falling tail, the ops of a window with a tail of at least b are a prefix: one
    # cumulative sum gives the load of every b at once.
    falling = np.argsort(-tails, kind="stable")
    falling = falling[cost[falling] > 0]
    if not len(falling):
        return 0.0
    head, tail, cost = heads[falling], tails[falling], cost[falling]
    longest = 0.0
    # Quantiles of heads stand for all heads: fewer windows give a weaker bound, still valid.
    starts = np.clip(STARTS_OF_OPS // len(head), *STARTS)
    for begin in np.unique(np.quantile(head, np.linspace(0, 1, starts), method="lower")):
        inside = head >= begin
        # (m,) for the m ops with a head of at least a: a + load of the prefix + b.
        windows = begin + cost[inside].cumsum() - memory_cost + tail[inside]
        longest = max(longest, float(windows[np.isfinite(windows)].max(initial=0.0)))
    return longest


# Narrow work: windows of ops that may run only on some devices.
SETS = 64
"""Most sets of devices with a window; the sets of most ops come first."""


def least_narrow(problem: Problem, paths: Paths) -> float:
    """Lower bound on the seconds of a step by the fullest window of ops confined to some devices,
    which share the work evenly."""
    sets, head, tail = DeviceSets.of(problem), paths.head, paths.tail
    allowed = problem.allowed[problem.unit]
    least = np.where(allowed, problem.seconds, np.inf).min(axis=1)
    longest = 0.0
    for on in narrow_sets(sets):
        within = np.all(sets.sets <= on, axis=1)
        ops = within[sets.of_unit][problem.unit]
        longest = max(longest, _fullest_window(head[ops], tail[ops], least[ops] / on.sum()))
    return longest


def narrow_sets(sets: DeviceSets) -> list[Bools]:
    """Proper subsets (d,) of the devices to which some units are confined."""
    return [on for on in sets.sets if not on.all()][:SETS]
