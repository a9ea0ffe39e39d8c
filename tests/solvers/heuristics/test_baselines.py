"""Baselines: one device, the placement by hand, and chance."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.errors import SituateError
from situate.solvers import solve
from situate.solvers.budget import Budget
from situate.solvers.heuristics.baselines import (
    SAMPLES,
    distinct_devices,
    everything_on,
    expert_placement,
    random_search,
)
from situate.solvers.search import Search
from situate.zoo import expert
from tests.solvers.families import apart, chain, devices, problem


# `single` is the best single device, and says what must be elsewhere.
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
    """Breadth first would read the tensors that two branches reuse in turns."""
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


def _network(**changes: dict[str, str]) -> Graph:
    """Four layers of the recurrent language model."""
    ops = tuple(
        Op(f"op{j}", seconds={"*": 1.0}, module=f"layers.{j}", **changes.get(f"op{j}", {}))  # type: ignore[arg-type]
        for j in range(4)
    )
    return Graph("rnnlm", ops, source="pytorch")


# `expert` puts the stages of a known network on the accelerators.
def test_a_graph_that_is_no_known_network_is_refused() -> None:
    with pytest.raises(SituateError, match="no expert placement is known for graph 'small'"):
        solve(Problem(chain(3), devices(1, 1)), "expert")


def test_stages_go_to_the_accelerators_in_order() -> None:
    names = (("c0", "cpu"), ("a0", "acc"), ("a1", "acc"))
    cluster = Cluster("c", tuple(Device(n, k) for n, k in names), (Link("*", "*", 1.0),))
    problem = Problem(_network(), cluster)
    stages = np.array(expert(problem.graph, 2))
    assert len(set(stages)) == 2
    assert expert_placement(problem).tolist() == (stages + 1).tolist()


def test_pins_and_what_cannot_run_go_first() -> None:
    network = _network(op0={"device": "d1"})
    problem = Problem(network, devices(1, 1))
    assert expert_placement(problem)[0] == 1
    solve(problem, "expert").schedule.verify(problem)


def test_without_accelerators_every_device_counts() -> None:
    cluster = Cluster("c", (Device("c0", "cpu"), Device("c1", "cpu")), (Link("*", "*", 1.0),))
    assert accelerators(Problem(_network(), cluster)) == [0, 1]


def _drawn(of: Problem, evaluations: int) -> np.ndarray:
    """Placements (evaluations, n) as they are drawn."""
    search = Search(of, -1.0, budget=Budget(evaluation_limit=evaluations), threads=1)
    placements = []
    offer = search.offer
    search.offer = lambda placement, *rest: placements.append(placement) or offer(placement, *rest)  # type: ignore[method-assign]
    random_search(search)
    return np.array(placements)


# `random` draws uniformly among what is allowed, and keeps to its number of draws.
def test_it_draws_as_many_as_asked() -> None:
    assert _drawn(problem("layered"), 37).shape == (37, 20)


def test_without_a_number_it_draws_a_thousand() -> None:
    assert solve(problem("bus"), "random", time_limit=60).evaluations == SAMPLES


def test_devices_are_drawn_evenly_among_those_allowed() -> None:
    ops = (Op("a", seconds={"*": 1.0}), Op("b", seconds={"d0": 1.0, "d2": 1.0}))
    placements = _drawn(Problem(Graph("g", ops), devices(1, 1, 1)), 3000)
    assert np.bincount(placements[:, 0]) == pytest.approx([1000] * 3, rel=0.1)
    assert np.bincount(placements[:, 1]) == pytest.approx([1500, 0, 1500], rel=0.1)


def test_a_group_is_drawn_together() -> None:
    placements = _drawn(Problem(apart(4, group="g"), devices(1, 1)), 50)
    assert (placements == placements[:, :1]).all()
    assert len(np.unique(placements)) == 2


def test_the_seed_decides() -> None:
    results = [
        solve(problem("bus"), "random", time_limit=None, evaluations=9, seed=seed)
        for seed in (3, 3, 4)
    ]
    assert np.array_equal(results[0].order, results[1].order)
    assert not np.array_equal(results[0].order, results[2].order)
