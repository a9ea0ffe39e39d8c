"""`heft` on the example of its paper, and beside hand-made cases."""

from __future__ import annotations

import numpy as np
import pytest

from situate import _core
from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.simulation.simulator import Simulator
from situate.solvers import solve
from tests.solvers.families import apart, chain, devices, fork

SECONDS = (
    (14, 16, 9), (13, 19, 18), (11, 13, 19), (13, 8, 17), (12, 13, 10),
    (13, 16, 9), (7, 15, 11), (5, 11, 14), (18, 12, 20), (21, 7, 16),
)  # fmt: skip
EDGES = (
    (1, 2, 18), (1, 3, 12), (1, 4, 9), (1, 5, 11), (1, 6, 14), (2, 8, 19), (2, 9, 16), (3, 7, 23),
    (4, 8, 27), (4, 9, 23), (5, 9, 13), (6, 8, 15), (7, 10, 17), (8, 10, 11), (9, 10, 13),
)  # fmt: skip
RANKS = (108, 77, 80, 80, 69, 63.333, 42.667, 35.667, 44.333, 14.667)


def _papers_example() -> Problem:
    """Topcuoglu et al., Fig. 2: transfers cost the same between any two of three processors."""
    ops = tuple(
        Op(f"n{j + 1}", seconds={f"p{d + 1}": float(s) for d, s in enumerate(row)})
        for j, row in enumerate(SECONDS)
    )
    tensors = tuple(
        Tensor(f"{a}-{b}", a - 1, 1, (b - 1,), seconds=float(cost)) for a, b, cost in EDGES
    )
    cluster = Cluster("three", tuple(Device(f"p{d}") for d in (1, 2, 3)), (Link("*", "*", 1.0),))
    return Problem(Graph("paper", ops, tensors), cluster, "time", "doppler")  # type: ignore[arg-type]


def test_upward_ranks_are_the_papers() -> None:
    ranks = _core.search.upward_rank(Simulator(_papers_example()).core)
    assert ranks == pytest.approx(RANKS, abs=1e-3)


def test_the_papers_example_ends_no_later_than_in_the_paper() -> None:
    """80 in the paper with insertion into gaps; 86 with its order and without insertion."""
    result = solve(_papers_example(), "heft")
    assert 54 <= result.value <= 86


def test_a_chain_stays_on_the_fast_device() -> None:
    result = solve(Problem(chain(6), devices(2, 1)), "heft")
    assert result.placement.tolist() == [1] * 6


def test_equal_devices_share_equal_work() -> None:
    result = solve(Problem(apart(8), devices(1, 1)), "heft")
    assert result.value == 4
    assert result.gap == 0


def test_a_slow_device_helps_where_it_ends_sooner() -> None:
    result = solve(Problem(apart(3), devices(1, 2)), "heft")
    assert result.value == 2
    assert np.bincount(result.placement).tolist() == [2, 1]


def test_dear_transfers_keep_ops_together() -> None:
    assert solve(Problem(fork(5, size=1000), devices(1, 1)), "heft").value == 5


def test_a_full_device_comes_last() -> None:
    problem = Problem(apart(6, persistent=10), devices(1, 1, memory=30))
    result = solve(problem, "heft")
    assert result.feasible
    assert result.schedule.peak.tolist() == [30, 30]


def test_a_group_follows_its_first_op() -> None:
    assert len(set(solve(Problem(apart(5, group="g"), devices(1, 1)), "heft").placement)) == 1


def test_a_parameter_goes_where_its_reader_goes() -> None:
    ops = (
        Op("weight", seconds={"*": 0.0}, persistent=8),
        Op("layer", seconds={"x1": 1.0, "x2": 5.0}),
    )
    graph = Graph("g", ops, (Tensor("w", 0, 8, (1,), resident=True),))
    assert solve(Problem(graph, devices(2, 1)), "heft").placement.tolist() == [1, 1]
