"""Colocation groups have a device to themselves."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from msgspec import structs

from situate.bounds.groups import least_group, seconds_of_units
from situate.bounds.lower_bound import tightest_bound
from situate.bounds.paths import Paths
from situate.bounds.together import least_together
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.solvers import solve
from tests.solvers.exhaustive import best_values
from tests.solvers.families import apart, chain, devices, layered


def together(problem: Problem) -> float:
    return least_together(problem, Paths.of(problem))


def grouped(problem: Problem) -> float:
    return least_group(problem, Paths.of(problem))


@pytest.mark.parametrize("objective", ["time", "throughput"])
def test_all_in_one_group_is_proved_optimal(objective: str) -> None:
    """Six seconds on one of three devices, where the load alone is two."""
    problem = Problem(apart(6, group="g"), devices(1, 1, 1), objective)  # type: ignore[arg-type]
    bound = tightest_bound(problem)
    assert (bound.value, bound.name) == (6, "colocation group")
    assert solve(problem, "single").optimal


def test_what_comes_before_and_after_a_group_counts() -> None:
    """A second, four that share a device, and a second."""
    ops = tuple(
        Op(f"op{j}", seconds={"*": 1.0}, group="g" if 0 < j < 5 else None) for j in range(6)
    )
    after = tuple(Tensor(f"t{j}", j, 0, (5,)) for j in range(1, 5))
    tensors = (Tensor("t0", 0, 0, (1, 2, 3, 4)), *after)
    assert grouped(Problem(Graph("g", ops, tensors), devices(1, 1, 1, 1))) == 6


def test_a_group_is_on_one_device_though_its_ops_are_fastest_on_different_ones() -> None:
    """Eleven seconds on either device, where each op alone takes one on its own."""
    ops = tuple(
        Op(f"op{j}", seconds={f"d{j}": 1.0, f"d{1 - j}": 10.0}, group="g") for j in range(2)
    )
    assert grouped(Problem(Graph("g", ops), devices(1, 1))) == 11


def test_an_op_without_a_group_is_one_by_itself() -> None:
    assert grouped(Problem(chain(5), devices(1, 2))) == 5


def test_a_group_takes_no_time_where_it_may_not_run() -> None:
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}, group="g", device="d1") for j in range(3))
    assert seconds_of_units(Problem(Graph("g", ops), devices(1, 1))).tolist() == [[float("inf"), 3]]


@pytest.mark.parametrize("seed", range(40))
def test_no_plan_of_a_tiny_problem_is_faster(seed: int) -> None:
    """Two layers of ops, of which some share one of two groups."""
    small = layered(2, 2 + seed % 2, seed, size=seed % 4)
    draw = np.random.default_rng(seed)
    ops = tuple(structs.replace(op, group=draw.choice(["a", "b", None])) for op in small.ops)
    rules = RULES[("situate", "regal", "doppler")[seed % 3]]
    problem = Problem(dataclasses.replace(small, ops=ops), devices(1, 2), rules=rules)
    best = best_values(problem)
    assert best is not None
    assert 0 < grouped(problem) <= best["time"] * (1 + 1e-12)
    assert 0 < least_group(problem, Paths.without(problem)) <= best["throughput"] * (1 + 1e-12)
    assert together(problem) <= best["time"] * (1 + 1e-12)
