"""Small random sharding problems, and their optimum by trying everything."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np

from situate.sharding import ShardingProblem


def random_problem(seed: int, ops: int = 7, most: int = 4, tight: float = 0.7) -> ShardingProblem:
    """A connected problem with forbidden pairs, whose limit is a share of the largest peak."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most + 1, ops)
    costs = [rng.integers(0, 50, size) for size in sizes]
    usages = [rng.integers(0, 20, size) for size in sizes]
    begins = rng.integers(0, 6, ops)
    intervals = np.stack([begins, begins + rng.integers(0, 5, ops)], axis=1)
    pairs = {(int(rng.integers(0, b)), b) for b in range(1, ops)}
    pairs |= {(a, b) for a in range(ops) for b in range(a + 1, ops) if rng.random() < 0.2}
    edges = tuple(sorted(pairs))
    tables = tuple(rng.integers(0, 60, (sizes[a], sizes[b])) for a, b in edges)
    for table in tables:
        table[rng.random(table.shape) < 0.1] = 10**18
    largest = [int(usage.argmax()) for usage in usages]
    problem = ShardingProblem(f"random {seed}", costs, usages, intervals, edges, tables, 10**6)
    limit = int(tight * problem.peak(largest))
    return ShardingProblem(problem.name, costs, usages, intervals, edges, tables, limit)


def least_cost(problem: ShardingProblem) -> int | None:
    """The least cost within the limit; None if nothing fits."""
    choices = product(*(range(len(cost)) for cost in problem.costs))
    fitting = (x for x in choices if problem.peak(x) <= problem.limit)
    least = min((problem.cost(x) for x in fitting), default=None)
    return None if least is None or least >= 10**17 else least


def content(problem: ShardingProblem) -> dict[str, object]:
    """The problem as a file of the contest holds it."""
    return {
        "problem": {
            "edges": {
                "costs": [table.ravel().tolist() for table in problem.tables],
                "nodes": [list(edge) for edge in problem.edges],
            },
            "name": problem.name,
            "nodes": {
                "costs": [cost.tolist() for cost in problem.costs],
                "intervals": problem.intervals.tolist(),
                "usages": [usage.tolist() for usage in problem.usages],
            },
            "usage_limit": problem.limit,
        }
    }


def write(path: Path, problem: object) -> Path:
    """A file of the contest."""
    path.write_text(json.dumps(problem))
    return path
