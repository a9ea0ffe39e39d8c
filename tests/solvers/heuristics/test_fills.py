"""Fills: devices are filled one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers import solve
from situate.solvers.heuristics.fills import equal_share, fill, footprints
from tests.solvers.families import apart, chain, devices


# `topological` fills device after device in the order of the graph.
def test_equal_shares_in_topological_order() -> None:
    placement = fill(Problem(apart(8, persistent=10), devices(1, 1)))
    assert placement.tolist() == sorted(placement)
    assert set(placement) == {0, 1}


@pytest.mark.parametrize("seed", range(10))
def test_along_a_chain_no_device_is_returned_to(seed: int) -> None:
    held = np.random.default_rng(seed).integers(0, 20, 15).tolist()
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}, persistent=b) for j, b in enumerate(held))
    placement = fill(Problem(Graph("g", ops), devices(1, 1, 1, 1)))
    assert placement.tolist() == sorted(placement)


def test_shares_follow_the_memory_where_equal_ones_do_not_fit() -> None:
    """Each op makes 10 bytes, which stay: equal shares of these bytes are more than d1 has."""
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}, persistent=10) for j in range(12))
    made = tuple(Tensor(f"t{j}", j, 10, output=True) for j in range(12))
    accelerators = (Device("d0", "x1", memory=210), Device("d1", "x1", memory=90))
    problem = Problem(Graph("g", ops, made), Cluster("c", accelerators, (Link("*", "*", 1.0),)))
    result = solve(problem, "topological")
    assert result.feasible
    assert np.bincount(result.placement).tolist() == [9, 3]
    assert np.bincount(fill(problem)).tolist() == [7, 5]


def test_a_device_is_filled_to_its_capacity_at_most() -> None:
    result = solve(Problem(apart(9, persistent=10), devices(1, 1, 1, memory=35)), "topological")
    assert result.feasible
    assert sorted(result.schedule.peak.tolist()) == [30, 30, 30]


def test_cpus_take_what_is_left_over() -> None:
    cluster = Cluster(
        "c", (Device("c0", "cpu"), Device("a0", "acc", memory=30)), (Link("*", "*", 1.0),)
    )
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}, persistent=10) for j in range(5))
    placement = fill(Problem(Graph("g", ops), cluster))
    assert placement.tolist() == [1, 1, 1, 0, 0]


def test_a_parameter_comes_just_before_its_first_reader() -> None:
    """All parameters stand first in the file, but are filled in with the ops that read them."""
    n = 6
    ops = [Op(f"weight{j}", seconds={"*": 0.0}, persistent=10) for j in range(n)]
    ops += [Op(f"layer{j}", seconds={"*": 1.0}) for j in range(n)]
    tensors = [Tensor(f"w{j}", j, 10, (n + j,), resident=True) for j in range(n)]
    tensors += [Tensor(f"x{j}", n + j, 1, (n + j + 1,)) for j in range(n - 1)]
    placement = fill(Problem(Graph("g", tuple(ops), tuple(tensors)), devices(1, 1, memory=40)))
    assert (placement[:n] == placement[n:]).all()
    assert set(placement) == {0, 1}


def test_one_device_takes_everything() -> None:
    assert fill(Problem(chain(4), devices(1))).tolist() == [0] * 4


def placed(problem: Problem) -> list[int]:
    return solve(problem, "m_topo").placement.tolist()


# `m_topo` fills accelerators in topological order, each up to Baechi's cap.
def test_each_takes_its_share_and_the_largest_op_more() -> None:
    """12 bytes on two devices, and one more byte: 7 fit on the first."""
    assert placed(Problem(apart(12, persistent=1), devices(1, 1))) == [0] * 7 + [1] * 5


def test_tensors_and_workspace_count_as_well() -> None:
    """An op takes 2 + 1 + 3 bytes, the last one no tensor: of 33 bytes 16.5 + 6 are the cap."""
    problem = Problem(chain(6, persistent=2, workspace=1, size=3), devices(1, 1))
    assert footprints(problem).tolist() == [6, 6, 6, 6, 6, 3]
    assert placed(problem) == [0, 0, 0, 1, 1, 1]


def test_tensors_do_not_count_where_only_persistent_bytes_do() -> None:
    problem = Problem(chain(6, persistent=2), devices(1, 1), "time", "dnn-partitioning")  # type: ignore[arg-type]
    assert footprints(problem).tolist() == [2] * 6


def test_a_resident_tensor_counts_once() -> None:
    ops = (Op("w", seconds={"*": 0.0}, persistent=5), Op("a", seconds={"*": 1.0}))
    graph = Graph("g", ops, (Tensor("w", 0, 5, (1,), resident=True),))
    assert footprints(Problem(graph, devices(1))).tolist() == [5, 0]


def test_a_small_device_is_filled_to_its_capacity() -> None:
    small = (Device("d0", kind="x1", memory=3), Device("d1", kind="x1", memory=99))
    cluster = Cluster("c", small, (Link("*", "*", 1.0),))
    assert placed(Problem(apart(12, persistent=1), cluster)) == [0] * 3 + [1] * 9


def test_a_group_goes_where_its_first_op_goes() -> None:
    ops = tuple(
        Op(f"op{j}", seconds={"*": 1.0}, persistent=1, group="g" if j in (0, 5) else None)
        for j in range(6)
    )
    result = placed(Problem(Graph("g", ops), devices(1, 1)))
    assert result[0] == result[5] == 0


def test_a_pinned_op_does_not_end_the_turn_of_a_device() -> None:
    ops = tuple(
        Op(f"op{j}", seconds={"*": 1.0}, persistent=1, device="d1" if j == 1 else None)
        for j in range(8)
    )
    assert placed(Problem(Graph("g", ops), devices(1, 1))) == [0, 1, 0, 0, 0, 0, 1, 1]


def test_the_cpu_takes_what_no_gpu_has_room_for() -> None:
    small = (Device("gpu", kind="x1", memory=4), Device("cpu", kind="cpu", memory=99))
    cluster = Cluster("c", small, (Link("*", "*", 1.0),))
    result = placed(Problem(apart(6, persistent=1), cluster))
    assert np.bincount(result).tolist() == [4, 2]


def test_what_fits_nowhere_goes_where_most_room_is() -> None:
    result = solve(Problem(apart(5, persistent=10), devices(1, 1, memory=20)), "m_topo")
    assert not result.feasible
    assert sorted(result.schedule.peak.tolist()) == [20, 30]


def test_what_small_devices_leave_is_shared_by_the_others() -> None:
    assert equal_share(12, np.array([3.0, 99.0, 99.0])) == 4.5
    assert equal_share(12, np.array([4.0, 99.0, 99.0])) == 4
    assert equal_share(12, np.array([3.0, 4.0])) == np.inf
