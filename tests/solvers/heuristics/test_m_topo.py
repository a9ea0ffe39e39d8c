"""`m_topo` fills accelerators in topological order, each up to Baechi's cap."""

from __future__ import annotations

import numpy as np

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers import solve
from situate.solvers.heuristics.m_topo import bytes_of_units, equal_share
from tests.solvers.families import apart, chain, devices


def placed(problem: Problem) -> list[int]:
    return solve(problem, "m_topo").placement.tolist()


def test_each_takes_its_share_and_the_largest_op_more() -> None:
    """12 bytes on two devices, and one more byte: 7 fit on the first."""
    assert placed(Problem(apart(12, persistent=1), devices(1, 1))) == [0] * 7 + [1] * 5


def test_tensors_and_workspace_count_as_well() -> None:
    """An op takes 2 + 1 + 3 bytes, the last one no tensor: of 33 bytes 16.5 + 6 are the cap."""
    problem = Problem(chain(6, persistent=2, workspace=1, size=3), devices(1, 1))
    assert bytes_of_units(problem).tolist() == [6, 6, 6, 6, 6, 3]
    assert placed(problem) == [0, 0, 0, 1, 1, 1]


def test_tensors_do_not_count_where_only_persistent_bytes_do() -> None:
    problem = Problem(chain(6, persistent=2), devices(1, 1), "time", "dnn-partitioning")  # type: ignore[arg-type]
    assert bytes_of_units(problem).tolist() == [2] * 6


def test_a_resident_tensor_counts_once() -> None:
    ops = (Op("w", seconds={"*": 0.0}, persistent=5), Op("a", seconds={"*": 1.0}))
    graph = Graph("g", ops, (Tensor("w", 0, 5, (1,), resident=True),))
    assert bytes_of_units(Problem(graph, devices(1))).tolist() == [5, 0]


def test_a_small_device_is_filled_to_its_capacity() -> None:
    small = (Device("d0", kind="x1", memory=3), Device("d1", kind="x1", memory=99))
    cluster = Cluster("c", small, (Link("*", "*", 1.0),))
    assert placed(Problem(apart(12, persistent=1), cluster)) == [0] * 3 + [1] * 9


def test_a_group_goes_where_its_first_op_goes() -> None:
    ops = tuple(
        Op(f"op{j}", seconds={"*": 1.0}, persistent=1, group="g" if j in (0, 5) else None)
        for j in range(6)
    )
    found = placed(Problem(Graph("g", ops), devices(1, 1)))
    assert found[0] == found[5] == 0


def test_a_pinned_op_does_not_end_the_turn_of_a_device() -> None:
    ops = tuple(
        Op(f"op{j}", seconds={"*": 1.0}, persistent=1, device="d1" if j == 1 else None)
        for j in range(8)
    )
    assert placed(Problem(Graph("g", ops), devices(1, 1))) == [0, 1, 0, 0, 0, 0, 1, 1]


def test_the_cpu_takes_what_no_gpu_has_room_for() -> None:
    small = (Device("gpu", kind="x1", memory=4), Device("cpu", kind="cpu", memory=99))
    cluster = Cluster("c", small, (Link("*", "*", 1.0),))
    found = placed(Problem(apart(6, persistent=1), cluster))
    assert np.bincount(found).tolist() == [4, 2]


def test_what_fits_nowhere_goes_where_most_room_is() -> None:
    result = solve(Problem(apart(5, persistent=10), devices(1, 1, memory=20)), "m_topo")
    assert not result.feasible
    assert sorted(result.schedule.peak.tolist()) == [20, 30]


def test_what_small_devices_leave_is_shared_by_the_others() -> None:
    assert equal_share(12, np.array([3.0, 99.0, 99.0])) == 4.5
    assert equal_share(12, np.array([4.0, 99.0, 99.0])) == 4
    assert equal_share(12, np.array([3.0, 4.0])) == np.inf
