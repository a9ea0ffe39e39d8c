"""`single` is the best single device, and says what must be elsewhere."""

from __future__ import annotations

import numpy as np

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.solvers import solve
from situate.solvers.heuristics.single import distinct_devices, everything_on
from tests.solvers.families import apart, chain, devices


def test_the_fastest_device_is_best() -> None:
    result = solve(Problem(chain(5), devices(2, 1, 2)), "single")
    assert result.placement.tolist() == [1] * 5
    assert result.value == 5


def test_a_fast_device_without_room_loses_to_a_slow_one() -> None:
    fast, slow = devices(1, 2).devices
    cluster = Cluster("c", (Device(fast.name, fast.kind, memory=9), slow), devices(1, 2).links)
    result = solve(Problem(apart(5, persistent=2), cluster), "single")
    assert result.feasible
    assert result.placement.tolist() == [1] * 5


def test_where_nothing_fits_it_says_so() -> None:
    result = solve(Problem(apart(5, persistent=2), devices(1, 1, memory=9)), "single")
    assert not result.feasible
    assert result.schedule.overflow(result.problem).tolist() == [1, 0]


def test_what_must_be_elsewhere_is_elsewhere() -> None:
    ops = (Op("a", seconds={"*": 1.0}), Op("b", seconds={"d1": 1.0}), Op("c", seconds={"*": 1.0}))
    assert everything_on(Problem(Graph("g", ops), devices(1, 1)), 0).tolist() == [0, 1, 0]


def test_equal_devices_are_tried_once() -> None:
    assert distinct_devices(Problem(chain(2), devices(1, 2, 1, 2))) == [0, 1]


def test_devices_with_other_links_in_either_direction_differ() -> None:
    one_way = Link("d0", "d1", 0.5, both=False)
    cluster = Cluster("c", devices(1, 1, 1).devices, (Link("*", "*", 1.0), one_way))
    assert distinct_devices(Problem(chain(2), cluster)) == [0, 1, 2]


def test_a_cpu_is_no_accelerator_even_with_equal_seconds() -> None:
    """Under atomic rules a CPU runs any number of ops at once."""
    cluster = Cluster("c", (Device("a", "acc"), Device("b", "cpu")), (Link("*", "*", 1.0),))
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(4))
    problem = Problem(Graph("g", ops), cluster, "time", "dnn-partitioning")  # type: ignore[arg-type]
    assert solve(problem, "single").value == 1


def test_ops_run_in_the_order_of_the_program() -> None:
    """Breadth first would read what two branches reuse in turns."""
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in "abcd")
    graph = Graph("g", ops, control=((0, 1), (2, 3)))
    result = solve(Problem(graph, devices(1)), "single")
    assert result.order.tolist() == [0, 1, 2, 3]
    assert result.schedule.start.tolist() == [0, 1, 2, 3]


def test_both_decoders_are_tried_on_every_kind_of_device() -> None:
    assert solve(Problem(chain(3), devices(2, 1, 2)), "single").evaluations == 4


def test_the_value_is_the_sum_of_all_seconds() -> None:
    rng = np.random.default_rng(1)
    seconds = rng.exponential(1.0, 50).tolist()
    result = solve(Problem(chain(50, seconds=seconds), devices(1)), "single")
    assert result.value == np.cumsum(seconds)[-1]
    assert result.gap < 1e-9
