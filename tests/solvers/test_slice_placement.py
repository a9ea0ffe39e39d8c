"""Placements of slices, homes and what is left."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.problem import Problem
from situate.solvers import solve
from situate.solvers.slice_placement import completed, shared_out, side_by_side, slice_of_units
from tests.solvers.families import OBJECTIVES, RULES, devices
from tests.solvers.slices import sliced
from tests.solvers.test_solve import check


def test_what_runs_once_is_of_no_slice():
    problem = Problem(sliced(1, 1), devices(1, 1))
    found = slice_of_units(problem)
    of_ops = [found[unit] for unit in problem.unit]
    assert of_ops == [-1 if op.slice is None else op.slice for op in problem.graph.ops]


def test_slices_are_numbered_by_when_they_start():
    assert shared_out(np.ones((5, 2))).tolist() == [0, 1, 0, 1, 0]
    assert shared_out(np.array([[1.0, 2.0]] * 6)).tolist() == [0, 1, 0, 0, 1, 0]
    assert shared_out(np.array([[1.0, 10.0]] * 3)).tolist() == [0, 0, 0]


def test_slices_of_other_sizes_keep_their_numbers():
    sizes = np.array([[1.0], [1.0], [3.0], [1.0]])
    assert shared_out(np.hstack([sizes, sizes])).tolist() == [1, 1, 0, 1]


def test_a_sum_stands_before_its_reader_and_the_rest_behind_what_it_reads():
    problem = Problem(sliced(1, 1), devices(1, 1))
    names = [op.name for op in problem.graph.ops]
    wanted = np.full(problem.units, -1)
    wanted[problem.unit[names.index("a")]] = 0
    wanted[problem.unit[names.index("b")]] = 1
    placed = dict(zip(names, completed(problem, wanted).tolist(), strict=True))
    assert (placed["a/add1"], placed["b/add1"]) == (0, 1)
    assert placed["slice1/ga"] == placed["a/add1"]


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("method", ["data_parallel", "fsdp"])
def test_plans_hold_under_all_rules(method: str, objective: str, rules: str) -> None:
    for cluster in (devices(1, 2), devices(1, 1, memory=60), devices(1)):
        problem = Problem(sliced(2, 1, 1, update=1), cluster, objective, rules)
        check(problem, solve(problem, method))


def test_a_cpu_is_used_where_there_is_nothing_else():
    cpus = tuple(Device(f"cpu:{i}", kind="cpu") for i in range(2))
    problem = Problem(sliced(1, 1), Cluster("cpus", cpus, (Link("*", "*", 1e9),)))
    assert len(solve(problem, "data_parallel").devices_used) == 2


def test_side_by_side_all_slices_do_their_first_op_before_any_does_its_second():
    problem = Problem(sliced(1, 1), devices(1))
    names = [problem.graph.ops[op].name for op in side_by_side(problem)]
    work = [name for name in names if name.startswith("slice")]
    assert work == [f"slice{s}/{op}" for op in ("a", "b", "gb", "ga") for s in (0, 1)]
    assert names.index("b/add1") < names.index("slice0/ga")
