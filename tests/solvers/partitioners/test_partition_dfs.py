"""A partition with few bytes between parts, and a depth-first order."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.grouping.units import unit_graph
from situate.solvers import solve
from situate.solvers.partitioners.mapping import Mapping
from situate.solvers.partitioners.partition_dfs import _cut, depth_first_order
from situate.zoo import load
from tests.oracle.problems import random_problem
from tests.solvers.families import apart, chain, devices, graph, layered


def cliques(size: int, count: int) -> Problem:
    """Groups of ops that exchange much, of which each sends little to the next, in mixed order."""
    n = size * count
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(n))
    within = [(i, j) for i, j in product(range(n), repeat=2) if i < j and (j - i) % count == 0]
    heavy = [Tensor(f"h{i}.{j}", i, 100, (j,)) for i, j in within]
    light = [Tensor(f"l{j}", j, 1, (j + 1,)) for j in range(n - 1)]
    return Problem(Graph("g", ops, (*heavy, *light)), devices(*[1] * count))


# `partition_dfs` cuts few bytes under balance and keeps to its order of ops.
@pytest.mark.parametrize("count", [2, 3, 4])
def test_what_exchanges_much_is_one_part(count: int) -> None:
    placement = solve(cliques(6, count), "partition_dfs").placement.reshape(6, count)
    assert (placement == placement[0]).all()
    assert sorted(placement[0]) == list(range(count))


def test_no_cut_is_smaller_on_small_graphs() -> None:
    """No half of eight ops has a smaller cut, in nineteen of twenty graphs."""
    halves = np.array([p for p in product((0, 1), repeat=8) if sum(p) == 4])
    best = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        edges = [(i, j) for i in range(8) for j in range(i + 1, 8) if rng.random() < 0.4]
        problem = Problem(graph(8, edges, size=3), devices(1, 1))
        units = unit_graph(problem)
        least = min(_cut(units, half) for half in halves)
        result = solve(problem, "partition_dfs", seed=seed).placement
        assert result.sum() == 4
        best += _cut(units, result.astype(np.int64)) == least
    assert best >= 19


@pytest.mark.parametrize("gpus", [2, 4])
def test_every_gpu_gets_its_part_of_a_network_and_the_cpu_none(gpus: int) -> None:
    problem = Problem(load("inception_v3"), Cluster.preset(f"k80-{gpus}"))
    placement = solve(problem, "partition_dfs").placement
    seconds = problem.seconds[np.arange(problem.n), placement]
    part = np.bincount(placement, seconds, problem.d) / seconds.sum()
    assert part == pytest.approx([1 / gpus] * gpus + [0], abs=0.05)


def test_a_device_of_half_the_speed_gets_half_the_work() -> None:
    problem = Problem(layered(20, 10, 1), devices(1, 2))
    placement = solve(problem, "partition_dfs").placement
    busy = np.bincount(placement, problem.seconds[np.arange(problem.n), placement])
    assert busy[0] == pytest.approx(busy[1], rel=0.15)


def test_devices_keep_to_the_depth_first_order() -> None:
    """By the serial decoder alone, whatever the eager one would make of it."""
    for seed in range(10):
        problem = Problem(layered(6, 5, seed), devices(1, 1))
        result = solve(problem, "partition_dfs", seed=seed)
        assert result.decoder == "serial"
        assert np.array_equal(result.order, depth_first_order(problem))
        for device in range(2):
            mine = [op for op in result.order if result.placement[op] == device]
            assert (np.diff(result.schedule.start[mine]) >= 0).all()


def test_units_that_may_not_cross_are_on_their_side_from_the_start() -> None:
    """The ops of two chains gather around the pinned first ones."""
    ops = tuple(
        Op(f"op{j}", seconds={"*": 1.0}, device={0: "d1", 1: "d0"}.get(j)) for j in range(20)
    )
    tensors = tuple(Tensor(f"t{j}", j, 10, (j + 2,)) for j in range(18))
    result = solve(Problem(Graph("g", ops, tensors), devices(1, 1)), "partition_dfs", seed=1)
    assert result.placement.tolist() == [1, 0] * 10


def test_the_same_seed_gives_the_same_plan() -> None:
    problem = Problem(layered(8, 6, 1), devices(1, 1, 1))
    plans = [solve(problem, "partition_dfs", seed=7).placement for _ in range(2)]
    assert np.array_equal(*plans)


def test_one_heavy_unit_leaves_a_part_empty() -> None:
    seconds = [1000.0, *[1.0] * 5]
    result = solve(Problem(apart(6, seconds=seconds), devices(1, 1)), "partition_dfs")
    assert result.value == 1000


@pytest.mark.parametrize("seed", range(20))
def test_parts_are_of_the_mapped_devices(seed: int) -> None:
    problem = random_problem(seed)
    placement = solve(problem, "partition_dfs").placement
    assert problem.allowed[problem.unit, placement].all()
    assert Mapping.onto(problem, accelerators(problem)).devices.size


def order(graph: Graph) -> list[str]:
    ops = depth_first_order(Problem(graph, devices(1)))
    return [graph.ops[op].name for op in ops]


def ops(names: str) -> tuple[Op, ...]:
    return tuple(Op(name, seconds={"*": 1.0}) for name in names)


# XLA's depth-first order: post-order, what has many readers behind it first.
@pytest.mark.parametrize("seed", range(30))
def test_it_is_topological(seed: int) -> None:
    problem = random_problem(seed)
    result = depth_first_order(problem).tolist()
    assert sorted(result) == list(range(problem.n))
    assert all(
        result.index(before) < result.index(after) for before, after in problem.graph.edges()
    )


def test_a_branch_is_run_to_its_end_before_the_next() -> None:
    tensors = (Tensor("a", 0, 1, (2,)), Tensor("b", 1, 1, (3,)), Tensor("c", 2, 2, (4,)))
    graph = Graph("g", ops("abcde"), (*tensors, Tensor("d", 3, 1, (4,))))
    assert order(graph) == ["a", "c", "b", "d", "e"]


def test_of_two_inputs_the_one_with_more_bytes_behind_it_comes_first() -> None:
    graph = Graph("g", ops("abc"), (Tensor("a", 0, 1, (2,)), Tensor("b", 1, 9, (2,))))
    assert order(graph) == ["b", "a", "c"]


def test_further_readers_count_before_bytes() -> None:
    """a is read by two ops, so it comes before b, which is larger."""
    tensors = (Tensor("a", 0, 1, (2, 3)), Tensor("b", 1, 9, (2,)), Tensor("c", 2, 1, (3,)))
    assert order(Graph("g", ops("abcd"), tensors)) == ["a", "b", "c", "d"]


def test_readers_of_ops_further_back_count_as_well() -> None:
    """x is read twice, and makes c come before b, for c reads it."""
    tensors = (Tensor("x", 0, 1, (2, 3)), Tensor("b", 1, 9, (3,)), Tensor("c", 2, 1, (3,)))
    assert order(Graph("g", ops("xbcd"), tensors)) == ["x", "c", "b", "d"]


def test_sources_without_work_count_nothing() -> None:
    """The parameter w is large, and its reader b is not larger for it."""
    w = Op("w", seconds={"*": 0.0})
    tensors = (Tensor("w", 0, 99, (2,)), Tensor("a", 1, 5, (3,)), Tensor("b", 2, 1, (3,)))
    assert order(Graph("g", (w, *ops("abc")), tensors)) == ["a", "w", "b", "c"]


def test_control_edges_are_followed() -> None:
    assert order(Graph("g", ops("ba"), control=((1, 0),))) == ["a", "b"]


def test_the_number_of_paths_does_not_matter() -> None:
    """2^200 paths: sums over paths are limited."""
    tensors = [
        Tensor(f"t{j}{k}", 2 * j + k, 1, (2 * j + 2, 2 * j + 3)) for j in range(200) for k in (0, 1)
    ]
    many = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(402))
    assert len(order(Graph("g", many, tuple(tensors)))) == 402


def test_a_long_chain_is_no_recursion() -> None:
    assert order(chain(5000))[-1] == "op4999"
