"""Longest paths, and the ops in the middle of them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from msgspec import structs

from situate.bench.families.pipelines import pipeline
from situate.bounds.alike import DeviceSets
from situate.bounds.load import Load, least_load
from situate.bounds.lower_bound import lower_bound
from situate.bounds.paths import Paths
from situate.bounds.windows import least_narrow, least_window, narrow_sets
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from tests.oracle.problems import random_problem
from tests.solvers.exhaustive import best_values
from tests.solvers.families import apart, chain, devices, fork, graph

LIMITLESS = 2**53
"""Bytes; a device with more has memory for all."""


def window(problem: Problem) -> float:
    return least_window(problem, Paths.of(problem), least_load(problem))


def test_what_is_between_two_ends_is_shared() -> None:
    """Ten ops of a second between two: five seconds on each of two devices, and the ends."""
    assert window(Problem(fork(12), devices(1, 1))) == pytest.approx(7)


def test_what_comes_late_is_shared_by_what_is_left() -> None:
    """A chain of five seconds, whose end eight ops wait for."""
    edges = [(j, j + 1) for j in range(4)] + [(4, j) for j in range(5, 13)]
    assert window(Problem(graph(13, edges), devices(1, 1))) == pytest.approx(9)


def test_the_fast_device_takes_more_of_it() -> None:
    """Nine ops of a second or two: six and three, six seconds."""
    result = window(Problem(fork(11), devices(1, 2)))
    assert result == pytest.approx(8, rel=1e-2)
    assert result <= 8


def test_memory_forces_some_of_it_onto_the_slow_device() -> None:
    """Six ops of 4 bytes, of which 3 fit on the fast device, between two ends of a second."""
    between = graph(8, [(0, j) for j in range(1, 7)] + [(j, 7) for j in range(1, 7)], size=0)
    sizes = [0, *[4] * 6, 0]
    ops = tuple(
        structs.replace(op, persistent=bytes_)
        for op, bytes_ in zip(between.ops, sizes, strict=True)
    )
    cluster = devices(1, 2)
    fast, slow = cluster.devices
    small = dataclasses.replace(cluster, devices=(structs.replace(fast, memory=12), slow))
    heavy = dataclasses.replace(between, ops=ops)
    assert window(Problem(heavy, cluster)) < window(Problem(heavy, small)) <= 8


def test_without_a_path_it_is_the_load() -> None:
    problem = Problem(apart(30), devices(1, 2))
    assert window(problem) == pytest.approx(least_load(problem).seconds)


def test_no_seconds_make_no_window() -> None:
    assert window(Problem(fork(5, seconds=0.0), devices(1, 1))) == 0


def test_a_sum_of_prices_without_end_bounds_nothing() -> None:
    problem = Problem(chain(3, persistent=1), devices(1, memory=2))
    dear = Load(0.0, np.array([1.0]), np.array([6e307]))
    assert np.isfinite(least_window(problem, Paths.of(problem), dear))


@pytest.mark.parametrize("chunk", range(4))
def test_at_no_prices_is_it_above_the_best_plan_of_a_tiny_problem(chunk: int) -> None:
    """Any weights of sum one and any prices give a bound."""
    comparisons = 0
    for seed in range(chunk, 480, 4):
        problem = random_problem(seed)
        if problem.n > 6 or problem.d > 3 or (best := best_values(problem)) is None:
            continue
        draw = np.random.default_rng(seed)
        least = best["time"] * (1 + 1e-9)
        for scale in (0.0, 1e-3, 1e-2, 1e-1, 1.0):
            price = draw.exponential(scale, problem.d) * (problem.capacity < LIMITLESS)
            load = Load(0.0, draw.dirichlet(np.ones(problem.d)), price)
            assert least_window(problem, Paths.of(problem), load) <= least, seed
            comparisons += 1
    assert comparisons >= 60


# Windows of ops that only some devices may run.
def narrow(problem: Problem) -> float:
    return least_narrow(problem, Paths.of(problem))


@pytest.mark.parametrize(("stages", "batches"), [(2, 4), (4, 8), (4, 16), (8, 16)])
def test_a_uniform_pipeline_takes_what_its_last_stage_takes_with_what_is_before_it(
    stages: int, batches: int
) -> None:
    """The last stage begins after one second in each of the others. Where a backward pass is not
    split, its last micro-batch goes back through all of them, two seconds in each."""
    split, whole = (pipeline(stages, batches, split=split) for split in (True, False))
    assert lower_bound(split) == 3 * batches + stages - 1
    assert lower_bound(whole) == 3 * (batches + stages - 1)


def test_an_op_that_two_of_eight_devices_may_run_is_not_shared_by_all() -> None:
    """Twelve seconds of work for two devices."""
    small = apart(12)
    ops = tuple(structs.replace(op, seconds={"x1": 1.0}) for op in small.ops)
    problem = Problem(dataclasses.replace(small, ops=ops), devices(1, 1, *[2] * 6))
    assert narrow(problem) == pytest.approx(6)


def test_the_work_of_a_device_counts_between_what_comes_before_and_after_it() -> None:
    """An op on d0, four on d1, one on d0, and four others anywhere."""
    ops = [Op(f"op{j}", seconds={"*": 1.0}, device=f"d{0 < j < 5:d}") for j in range(6)]
    others = [Op(f"other{j}", seconds={"*": 1.0}) for j in range(4)]
    control = tuple((0, j) for j in range(1, 5)) + tuple((j, 5) for j in range(1, 5))
    problem = Problem(Graph("g", (*ops, *others), control=control), devices(1, 1, 1, 1))
    assert narrow(problem) == pytest.approx(6)


def test_where_everything_may_run_everywhere_nothing_is_narrow() -> None:
    problem = Problem(apart(5), devices(1, 2))
    assert narrow_sets(DeviceSets.of(problem)) == []
    assert narrow(problem) == 0


@pytest.mark.parametrize("chunk", range(2))
def test_no_plan_of_a_tiny_problem_is_faster(chunk: int) -> None:
    comparisons = 0
    for seed in range(chunk, 600, 2):
        problem = random_problem(seed)
        if problem.n > 6 or problem.d > 3 or (best := best_values(problem)) is None:
            continue
        assert narrow(problem) <= best["time"] * (1 + 1e-9), seed
        comparisons += narrow(problem) > 0
    assert comparisons >= 5


def test_the_period_of_a_pipeline_is_that_of_its_narrow_work() -> None:
    """Twelve seconds for two of eight devices, one step behind another."""
    ops = tuple(structs.replace(op, seconds={"x1": 1.0}) for op in apart(12).ops)
    small = dataclasses.replace(apart(12), ops=ops)
    problem = Problem(small, devices(1, 1, *[2] * 6), "throughput")
    assert lower_bound(problem) == 6
