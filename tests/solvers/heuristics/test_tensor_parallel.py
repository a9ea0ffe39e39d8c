"""`tensor_parallel`: parts on the devices of a team."""

from __future__ import annotations

import numpy as np
import pytest

from situate import Cluster, Graph, Problem, solve
from situate.data.cluster import Device, Link
from situate.data.graph import Op
from situate.errors import SituateError
from tests.solvers.parts import step


def placed(graph: Graph, cluster: str) -> np.ndarray:
    problem = Problem(graph, Cluster.find(cluster))
    return solve(problem, "tensor_parallel").schedule.placement


# Each part has a device of its own, on every layer.
def test_a_team_has_a_device_for_each_part() -> None:
    assert placed(step(2, 3), "identical:2").tolist() == [0, 1] * 3


def test_slices_are_shared_out_among_teams() -> None:
    assert placed(step(2, 1, slices=2), "identical:4").tolist() == [0, 1, 2, 3]


def test_teams_without_slices_are_stages() -> None:
    placement = placed(step(2, 2), "identical:4").tolist()
    assert placement in ([0, 1, 2, 3], [0, 1, 0, 1])


def test_one_team_is_enough_where_crossing_to_the_next_takes_longer_than_it_saves() -> None:
    links = (Link("*", "*", bandwidth=1.0), Link("a*", "a*", 1e12), Link("b*", "b*", 1e12))
    devices = tuple(Device(name, memory=2**40) for name in ("a0", "a1", "b0", "b1"))
    problem = Problem(step(2, 3), Cluster("slow between teams", devices, links))
    assert solve(problem, "tensor_parallel").devices_used == ["a0", "a1"]


def test_more_parts_than_devices_share_them() -> None:
    assert placed(step(4), "identical:2").tolist() == [0, 1, 0, 1]


def test_a_step_of_whole_ops_is_refused() -> None:
    graph = Graph("whole", (Op("a", seconds={"*": 1.0}),))
    with pytest.raises(SituateError, match="has whole ops: give --cuts"):
        solve(Problem(graph, Cluster.find("identical:2")), "tensor_parallel")


def test_auto_is_no_worse_than_the_rule_that_it_begins_with() -> None:
    problem = Problem(step(4, 4), Cluster.find("identical:4"))
    rule = solve(problem, "tensor_parallel")
    assert solve(problem, "auto", evaluations=200).value <= rule.value
