"""Placements of slices and of replicas."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.problem import Problem
from situate.data.slices import Slices
from situate.solvers import solve
from situate.solvers.slice_placement import (
    completed,
    meeting_devices,
    replica_devices,
    replica_seconds,
    shared_out,
    side_by_side,
    slice_of_units,
)
from tests.solvers.families import OBJECTIVES, RULES, devices
from tests.solvers.slices import sliced
from tests.solvers.test_solve import check


def by_name(problem: Problem, of_units: np.ndarray) -> dict[str, int]:
    """The number of the unit of each op that has one."""
    result = zip(problem.graph.ops, of_units[problem.unit].tolist(), strict=True)
    return {op.name: number for op, number in result if number >= 0}


# Replicas stand with their slices, and gradients meet on all devices.
def test_a_replica_takes_as_long_as_its_slices():
    seconds = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert replica_seconds(Slices((1, 1, 1), replicas=(2, 1)), seconds).tolist() == [
        [6.0, 8.0],
        [3.0, 4.0],
    ]


def test_a_replica_is_where_most_of_its_slices_are():
    problem = Problem(sliced(1, 1, 1, 1, 1, replicas=(3, 2)), devices(1, 1))
    assert problem.graph.slices.replica == (0, 1, 0, 1, 0)
    result = by_name(problem, replica_devices(problem, np.array([1, 0, 0, 0, 1])))
    of_first = {name: device for name, device in result.items() if "replica0" in name}
    assert set(of_first.values()) == {1}
    assert {"replica0/a", "replica0/a/add2", "replica0/a/sgd"} <= of_first.keys()
    assert set(result.values()) == {0, 1}


def test_gradients_of_equal_bytes_meet_on_every_device():
    problem = Problem(sliced(1, 1, replicas=(1, 1)), devices(1, 1, 1))
    assert by_name(problem, meeting_devices(problem, np.array([0, 2]))) == {
        "b/sum1": 0,
        "a/sum1": 2,
    }


def test_parameters_that_are_there_once_have_no_replica():
    problem = Problem(sliced(1, 1), devices(1, 1))
    assert by_name(problem, replica_devices(problem, np.array([0, 1]))) == {}
    assert by_name(problem, meeting_devices(problem, np.array([0, 1]))) == {}


def test_every_device_updates_the_replica_that_its_slices_read():
    problem = Problem(sliced(1, 1, 1, 1, replicas=(2, 2)), devices(1, 1, bandwidth=1e6))
    result = solve(problem, "data_parallel")
    placed = result.plan.placement
    for name in placed:
        part = name.partition("/")[0]
        if part.startswith("replica"):
            assert placed[name] == f"d{part[-1]}"
    assert len({placed["a/sum1"], placed["b/sum1"]}) == 2
    sent = [problem.graph.tensors[t].name for t in result.schedule.tensor]
    assert not any(name in sent for name in ("replica0/a", "replica1/a", "replica0/b"))


def test_replicas_that_do_not_fit_beside_their_slices_go_where_there_is_room():
    graph = sliced(1, 1, held=(40, 20), replicas=(1, 1))
    placed = solve(Problem(graph, devices(1, 1, 1, memory=50)), "data_parallel").plan.placement
    assert [placed[f"replica{r}/a"] for r in range(2)] == ["d0", "d1"]
    assert [placed[f"replica{r}/b"] for r in range(2)] == ["d2", "d2"]


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("method", ["data_parallel", "fsdp"])
def test_plans_hold_under_all_rules(method: str, objective: str, rules: str) -> None:
    for cluster in (devices(1, 2), devices(1, 1, memory=60), devices(1)):
        graph = sliced(2, 1, 1, update=1, replicas=(2, 1))
        problem = Problem(graph, cluster, objective, rules)
        check(problem, solve(problem, method))


# Placements of slices, homes and what is left.
def test_what_runs_once_is_of_no_slice():
    problem = Problem(sliced(1, 1), devices(1, 1))
    result = slice_of_units(problem)
    of_ops = [result[unit] for unit in problem.unit]
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
def test_plans_of_slices_hold_under_all_rules(method: str, objective: str, rules: str) -> None:
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
