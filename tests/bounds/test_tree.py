"""The bytes that a tree needs at once."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from msgspec import structs

from situate.bounds.lower_bound import tightest_bound
from situate.bounds.tree import bytes_of_tree
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers import solve
from tests.data.test_tree_order import tree
from tests.solvers.exhaustive import best_values
from tests.solvers.families import chain, devices, fork


def on(small: Graph, count: int, rules: str = "situate") -> Problem:
    return Problem(small, devices(*[1] * count), "memory", rules)  # type: ignore[arg-type]


def two_parts() -> Graph:
    """Two chains that meet, each of which holds one byte between ten and five."""
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(7))
    sizes, readers = (10, 1, 5, 10, 1, 5), (1, 2, 6, 4, 5, 6)
    tensors = (Tensor(f"t{j}", j, s, (readers[j],)) for j, s in enumerate(sizes))
    return Graph("two parts", ops, tuple(tensors))


def test_a_tree_on_one_device_is_certified() -> None:
    """Whatever has ended, no more than eleven bytes are certain."""
    problem = on(two_parts(), 1)
    bound = tightest_bound(problem)
    assert (bound.value, bound.name) == (12, "tree")
    assert solve(problem, evaluations=50).optimal


def test_a_large_tree_is_solved_by_its_order() -> None:
    result = solve(on(tree(300, 1), 1), evaluations=50)
    assert result.optimal


@pytest.mark.parametrize("seed", range(60))
def test_devices_hold_no_less_between_them(seed: int) -> None:
    """Ops take from no time to two seconds, on one device to three, which share what is bounded."""
    small, draw = tree(4, seed), np.random.default_rng(seed)
    ops = tuple(
        structs.replace(
            op, seconds={"*": float(draw.choice([0.0, 0.5, 1.0, 2.0], p=[p, *[(1 - p) / 3] * 3]))}
        )
        for op in small.ops
        for p in [0.2 * (seed % 2)]
    )
    for rules in ("situate", "regal", "doppler"):
        problem = on(dataclasses.replace(small, ops=ops), 1 + seed % 3, rules)
        best = best_values(problem)
        assert best is not None
        assert bytes_of_tree(problem) + problem.persistent.sum() <= problem.d * best["memory"]


def test_what_is_made_in_no_time_is_not_counted() -> None:
    """All three ops may run at one instant, of which no interval sees the tensors."""
    brief = chain(3, size=9, seconds=[0.0, 0.0, 1.0])
    assert bytes_of_tree(on(brief, 1)) == 0
    assert bytes_of_tree(on(brief, 1, "regal")) == 18


def test_what_is_no_tree_or_has_no_time_is_not_looked_at() -> None:
    assert bytes_of_tree(on(fork(5), 1)) == 0
    assert bytes_of_tree(on(chain(5, size=3), 1)) == 6
    assert bytes_of_tree(on(chain(5, size=3), 1), until=-math.inf) == 0
