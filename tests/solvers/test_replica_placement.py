"""Replicas stand with their slices, and gradients meet on all devices."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.data.slices import Slices
from situate.solvers import solve
from situate.solvers.replica_placement import (
    meeting_devices,
    replica_devices,
    replica_seconds,
)
from tests.solvers.families import OBJECTIVES, RULES, devices
from tests.solvers.slices import sliced
from tests.solvers.test_solve import check


def by_name(problem: Problem, of_units: np.ndarray) -> dict[str, int]:
    """The number of the unit of each op that has one."""
    found = zip(problem.graph.ops, of_units[problem.unit].tolist(), strict=True)
    return {op.name: number for op, number in found if number >= 0}


def test_a_replica_takes_as_long_as_its_slices():
    seconds = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert replica_seconds(Slices((1, 1, 1), replicas=(2, 1)), seconds).tolist() == [
        [6.0, 8.0],
        [3.0, 4.0],
    ]


def test_a_replica_is_where_most_of_its_slices_are():
    problem = Problem(sliced(1, 1, 1, 1, 1, replicas=(3, 2)), devices(1, 1))
    assert problem.graph.slices.replica == (0, 1, 0, 1, 0)
    found = by_name(problem, replica_devices(problem, np.array([1, 0, 0, 0, 1])))
    of_first = {name: device for name, device in found.items() if "replica0" in name}
    assert set(of_first.values()) == {1}
    assert {"replica0/a", "replica0/a/add2", "replica0/a/sgd"} <= of_first.keys()
    assert set(found.values()) == {0, 1}


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
    found = solve(problem, "data_parallel")
    placed = found.plan.placement
    for name in placed:
        part = name.partition("/")[0]
        if part.startswith("replica"):
            assert placed[name] == f"d{part[-1]}"
    assert len({placed["a/sum1"], placed["b/sum1"]}) == 2
    sent = [problem.graph.tensors[t].name for t in found.schedule.tensor]
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
