"""`m_etf` takes the pair of op and accelerator that can start first, of those that fit."""

from __future__ import annotations

import numpy as np
import pytest

from situate import _core
from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.simulation.simulator import Simulator
from situate.solvers import solve
from tests.solvers.families import apart, chain, devices, fork, layered


def test_equal_devices_share_equal_work() -> None:
    assert solve(Problem(apart(8), devices(1, 1)), "m_etf").value == 4


def test_a_chain_stays_where_it_began() -> None:
    result = solve(Problem(chain(6), devices(1, 1)), "m_etf")
    assert len(set(result.placement)) == 1
    assert result.value == 6


def test_ties_go_to_the_graphs_order() -> None:
    """Where `etf` takes the op that the rest waits for."""
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in ("last", "first", "then"))
    problem = Problem(Graph("g", ops, (Tensor("t", 1, 1, (2,)),)), devices(1))
    assert solve(problem, "m_etf").order[0] == 0


def test_the_slow_cpu_is_left_alone() -> None:
    pair = (Device("gpu", kind="x1"), Device("cpu", kind="cpu"))
    cluster = Cluster("c", pair, (Link("*", "*", 1.0),))
    assert solve(Problem(apart(6), cluster), "m_etf").placement.tolist() == [0] * 6


def test_the_cpu_takes_what_no_gpu_may_run_or_has_room_for() -> None:
    pair = (Device("gpu", kind="x1", memory=40), Device("cpu", kind="cpu", memory=99))
    cluster = Cluster("c", pair, (Link("*", "*", 1.0),))
    read = Op("read", seconds={"cpu": 1.0})
    big = tuple(Op(f"op{j}", seconds={"*": 1.0}, persistent=10) for j in range(6))
    result = solve(Problem(Graph("g", (read, *big)), cluster), "m_etf")
    assert result.feasible
    assert result.placement[0] == 1
    assert np.bincount(result.placement[1:]).tolist() == [4, 2]


def test_an_op_that_does_not_fit_lets_others_go_first() -> None:
    """The first op of the order is too large for d0 once its pinned op is there; the small ones
    are not, and start there at once."""
    ops = (
        Op("pinned", seconds={"*": 1.0}, persistent=60, device="d0"),
        Op("large", seconds={"*": 9.0}, persistent=50),
        Op("larger", seconds={"*": 9.0}, persistent=50),
        *(Op(f"small{j}", seconds={"*": 1.0}, persistent=1) for j in range(3)),
    )
    result = solve(Problem(Graph("g", ops), devices(1, 1, memory=105)), "m_etf")
    assert result.feasible
    assert result.placement.tolist() == [0, 1, 1, 0, 0, 0]
    assert result.schedule.end[3:].max() == 4


def test_freed_memory_is_used_again() -> None:
    """A branch of the fork fits only when the one before has given up its tensors."""
    problem = Problem(chain(40, size=10), devices(1, memory=20))
    assert solve(problem, "m_etf").feasible


def test_a_group_stays_together_and_fits_as_a_whole() -> None:
    ops = tuple(
        Op(f"op{j}", seconds={"*": 1.0}, persistent=10, group="g" if j % 2 else None)
        for j in range(8)
    )
    result = solve(Problem(Graph("g", ops), devices(1, 1, memory=40)), "m_etf")
    assert result.feasible
    assert len(set(result.placement[1::2])) == 1


def test_what_fits_nowhere_goes_where_least_is_lacking() -> None:
    result = solve(Problem(apart(5, persistent=10), devices(1, 1, memory=20)), "m_etf")
    assert not result.feasible
    assert sorted(result.schedule.peak.tolist()) == [20, 30]


def test_a_full_device_is_no_quadratic_scan() -> None:
    """30,000 ready ops, of which d0 has room for one; to look at all of them again for every op
    that is placed would not end."""
    small = (Device("d0", kind="x1", memory=1), Device("d1", kind="x1"))
    problem = Problem(apart(30_000, persistent=1), Cluster("c", small, (Link("*", "*", 1.0),)))
    assert np.bincount(solve(problem, "m_etf").placement).tolist() == [1, 29_999]


def test_every_op_is_placed_once() -> None:
    problem = Problem(layered(30, 20, 1), devices(1, 2, 1))
    result = solve(problem, "m_etf")
    assert sorted(result.order.tolist()) == list(range(problem.n))
    result.schedule.verify(problem)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"room": 1.1}, "a share of memory"),
        ({"preferred": np.ones(1, np.uint8)}, "each device is preferred or not"),
        ({"favourite": np.full(5, -1, np.int32)}, "each op has a favourite child"),
        ({"favourite": np.full(6, 6, np.int32)}, "each op has a favourite child"),
        ({"favourite": np.full(6, -2, np.int32)}, "each op has a favourite child"),
    ],
)
def test_the_core_refuses_what_is_not_of_its_problem(
    changes: dict[str, object], message: str
) -> None:
    core = Simulator(Problem(fork(6), devices(1, 1))).core
    given = {
        "room": 1.0,
        "preferred": np.ones(2, np.uint8),
        "favourite": np.full(6, -1, np.int32),
    }
    with pytest.raises(ValueError, match=message):
        _core.search.memory_constrained(core, **(given | changes))  # type: ignore[arg-type]


def test_where_no_device_is_preferred_all_take_what_they_can() -> None:
    core = Simulator(Problem(apart(6), devices(1, 1))).core
    placement, _ = _core.search.memory_constrained(
        core, 1.0, preferred=np.zeros(2, np.uint8), favourite=np.full(6, -1, np.int32)
    )
    assert np.bincount(placement).tolist() == [3, 3]
