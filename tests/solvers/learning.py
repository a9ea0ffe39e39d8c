"""A problem worth learning on: blocks of four branches of ops of 30 to 90 ms on three devices and a
slow one, a millisecond between any two. A step takes about a second, as in the papers."""

from __future__ import annotations

import numpy as np

from situate.problem import Problem
from situate.result import Result
from situate.solvers import solve
from situate.solvers.learner import Learning, Settings
from tests.solvers.families import devices, graph

BLOCKS, BRANCHES = 4, 4


def branching() -> Problem:
    """36 ops; a single device takes six times the critical path or so."""
    rng = np.random.default_rng(7)
    edges, n = [], 1
    for _ in range(BLOCKS):
        join = n + 2 * BRANCHES
        for branch in range(BRANCHES):
            first = n + 2 * branch
            edges += [(n - 1, first), (first, first + 1), (first + 1, join)]
        n = join + 1
    seconds = rng.uniform(0.03, 0.09, n).tolist()
    return Problem(graph(n, edges, seconds=seconds), devices(1, 1, 1, 2, bandwidth=1000.0))


def learnt(method: str, settings: Settings = "tuned", seed: int = 0, **changes: object) -> Result:
    """1,200 samples on the branching problem."""
    learning = Learning(settings=settings, **changes)  # type: ignore[arg-type]
    return solve(branching(), method, evaluations=1200, seed=seed, learning=learning)


def first_sixty(result: Result) -> float:
    """The best of the first 60 samples."""
    return float(result.samples[:60].min())
