"""Ops that a step is too short to part."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from msgspec import structs

from situate.bounds.lower_bound import tightest_bound
from situate.bounds.paths import Paths
from situate.bounds.together import least_group, least_together, seconds_of_units
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.solvers import solve
from tests.bounds.test_paths import detour
from tests.oracle.problems import random_problem
from tests.solvers.exhaustive import best_values
from tests.solvers.families import apart, chain, devices, fork, graph, layered


# Colocation groups have a device to themselves.
def colocated(problem: Problem) -> float:
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
def test_no_plan_of_a_tiny_problem_is_faster_than_its_groups(seed: int) -> None:
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
    assert colocated(problem) <= best["time"] * (1 + 1e-12)


def together(problem: Problem) -> float:
    return least_together(problem, Paths.of(problem))


def test_a_fork_whose_tensors_are_slow_stays_whole() -> None:
    """Twelve ops of a second; any transfer makes a path of 2 + 100 seconds or more."""
    problem = Problem(fork(12, size=100), devices(1, 1, 1, 1))
    assert together(problem) == 12
    assert tightest_bound(problem).name == "together"


def test_where_a_transfer_is_worth_it_the_step_is_as_long_as_its_path() -> None:
    """The shortest path with a transfer takes 3 + 4 seconds."""
    assert together(Problem(fork(12, size=4), devices(1, 1, 1, 1))) == 7


def test_two_of_three_parts_share_a_device() -> None:
    """Three chains of four seconds on two devices, none of which is worth a transfer."""
    edges = [(j, j + 1) for j in range(11) if j % 4 < 3]
    assert together(Problem(graph(12, edges, size=100), devices(1, 1))) == 8


def test_a_group_is_no_more_parted_than_what_it_holds_together() -> None:
    """Two chains of three seconds, joined by the group of their ends, that no transfer is worth."""
    edges = [(0, 1), (1, 2), (3, 4), (4, 5)]
    small = graph(6, edges, size=100)
    ends = tuple(
        structs.replace(op, group="ends" if j in (2, 5) else None) for j, op in enumerate(small.ops)
    )
    assert together(Problem(small, devices(1, 1))) == 3
    assert together(Problem(dataclasses.replace(small, ops=ends), devices(1, 1))) == 6


def test_a_part_is_on_one_device_though_its_ops_are_fastest_on_different_ones() -> None:
    """Eleven seconds on either of two devices, or two and a transfer of eight."""
    ops = tuple(Op(f"op{j}", seconds={f"d{j}": 1.0, f"d{1 - j}": 10.0}) for j in range(2))
    for size, least in ((8, 10), (20, 11)):
        sent = Graph("g", ops, (Tensor("t", 0, size, (1,)),))
        assert together(Problem(sent, devices(1, 1))) == least


def test_a_slow_device_is_not_parted_from_though_transfers_to_it_are_short() -> None:
    assert together(detour()) == 3


@pytest.mark.parametrize(("limit", "value"), [("EDGES", 19), ("PAIRS", 79)])
def test_graphs_of_too_many_edges_are_not_looked_at(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(f"situate.bounds.together.{limit}", value)
    assert together(Problem(fork(12, size=100), devices(1, 1))) == 0


def test_what_is_pinned_apart_is_not_held_together() -> None:
    """The transfer between two pinned ops is on the path of every step."""
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}, device=f"d{j}") for j in range(2))
    assert together(Problem(Graph("g", ops, (Tensor("t", 0, 9, (1,)),)), devices(1, 1))) == 11


def test_without_edges_or_other_devices_nothing_is_held_together() -> None:
    assert together(Problem(apart(5), devices(1, 1))) == 0
    assert together(Problem(chain(5), devices(1))) == 0


@pytest.mark.parametrize("chunk", range(4))
def test_no_plan_of_a_tiny_problem_is_faster_than_ops_that_share(chunk: int) -> None:
    comparisons = 0
    for seed in range(chunk, 400, 4):
        sample = random_problem(seed)
        for rules in (sample.rules, RULES["regal"], RULES["doppler"]):
            problem = Problem(sample.graph, sample.cluster, rules=rules)
            if problem.n > 5 or problem.d > 3 or (best := best_values(problem)) is None:
                continue
            assert together(problem) <= best["time"] * (1 + 1e-12), (seed, rules.name)
            comparisons += together(dataclasses.replace(problem)) > 0
    assert comparisons >= 5
