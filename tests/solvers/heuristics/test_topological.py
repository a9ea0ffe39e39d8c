"""`topological` fills device after device in the order of the graph."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers import solve
from situate.solvers.heuristics.topological import fill
from tests.solvers.families import apart, chain, devices


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
    """Each op makes 10 bytes, which stay: equal shares of what is held are more than d1 has."""
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
