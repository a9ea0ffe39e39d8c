"""Windows of ops that only some devices may run."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec import structs

from situate.bench.families.pipelines import pipeline
from situate.bounds.device_sets import DeviceSets
from situate.bounds.lower_bound import lower_bound
from situate.bounds.narrow import least_narrow, narrow_sets
from situate.bounds.paths import Paths
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from tests.oracle.problems import random_problem
from tests.solvers.exhaustive import best_values
from tests.solvers.families import apart, devices


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
    compared = 0
    for seed in range(chunk, 600, 2):
        problem = random_problem(seed)
        if problem.n > 6 or problem.d > 3 or (best := best_values(problem)) is None:
            continue
        assert narrow(problem) <= best["time"] * (1 + 1e-9), seed
        compared += narrow(problem) > 0
    assert compared >= 5


def test_the_period_of_a_pipeline_is_that_of_its_narrow_work() -> None:
    """Twelve seconds for two of eight devices, one step behind another."""
    ops = tuple(structs.replace(op, seconds={"x1": 1.0}) for op in apart(12).ops)
    small = dataclasses.replace(apart(12), ops=ops)
    problem = Problem(small, devices(1, 1, *[2] * 6), "throughput")
    assert lower_bound(problem) == 6
