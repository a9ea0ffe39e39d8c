"""Longest paths before and after every op."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest
from msgspec import structs

from situate.bounds import paths
from situate.bounds.paths import Paths
from situate.data.arrays import Floats
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.rules import RULES
from tests.oracle.problems import random_problem
from tests.solvers.families import chain, devices, fork, graph


def pinned(small: Graph, *to: str) -> Graph:
    """The graph with its ops on these devices."""
    ops = tuple(structs.replace(op, device=name) for op, name in zip(small.ops, to, strict=True))
    return dataclasses.replace(small, ops=ops)


def test_heads_and_tails_of_a_chain() -> None:
    found = Paths.of(Problem(chain(4, seconds=[1.0, 2.0, 3.0, 4.0]), devices(1, 2)))
    assert found.head.tolist() == [0, 1, 3, 6]
    assert found.tail.tolist() == [9, 7, 4, 0]
    assert found.longest == 10


def test_ops_on_two_devices_have_a_transfer_between_them() -> None:
    """Five bytes at a byte a second, after half a second of latency."""
    small = pinned(chain(3, size=5), "d0", "d1", "d1")
    found = Paths.of(Problem(small, devices(1, 1, latency=0.5)))
    assert found.head.tolist() == [0, 6.5, 7.5]
    assert found.tail.tolist() == [7.5, 1, 0]
    assert found.longest == 8.5


def test_a_signal_takes_the_synchronisation() -> None:
    small = pinned(Graph("g", chain(2).ops, control=((0, 1),)), "d0", "d1")
    assert Paths.of(Problem(small, devices(1, 1, synchronisation=0.25))).longest == 2.25


def test_a_detour_to_a_faster_device_pays_for_its_transfers() -> None:
    """The middle op takes 1 second on the fast device and 4 where the ends are; two transfers take
    one second each, or two each."""
    ops = tuple(
        Op(name, seconds=seconds)
        for name, seconds in (("a", {"d0": 1.0}), ("b", {"d0": 4.0, "d1": 1.0}), ("c", {"d0": 1.0}))
    )
    tensors = (Tensor("t", 0, 1, (1,)), Tensor("u", 1, 1, (2,)))
    small = Graph("g", ops, tensors)
    assert Paths.of(Problem(small, devices(1, 1))).longest == 5
    assert Paths.of(Problem(small, devices(1, 1, bandwidth=0.5))).longest == 6


def test_a_group_makes_no_detour() -> None:
    """The second op is faster where the first is slow."""
    ops = tuple(
        Op(name, seconds=seconds, group="g")
        for name, seconds in (("a", {"d0": 1.0, "d1": 9.0}), ("b", {"d0": 9.0, "d1": 1.0}))
    )
    small = Graph("g", ops, (Tensor("t", 0, 0, (1,)),))
    assert Paths.of(Problem(small, devices(1, 1))).longest == 10


@pytest.mark.parametrize("rules", ["situate", "dnn-partitioning"])
def test_transfers_are_free_under_atomic_rules_and_where_there_are_very_many_pairs(
    rules: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = Problem(pinned(chain(3, size=5), "d0", "d1", "d1"), devices(1, 1), rules=RULES[rules])
    if rules == "situate":
        assert Paths.of(problem).longest == 8
        monkeypatch.setattr(paths, "PAIRS", 1)
    assert Paths.of(problem).longest == 3
    assert Paths.of(problem).head.tolist() == [0, 1, 2]


@pytest.mark.parametrize("seed", range(50))
def test_no_path_through_an_op_is_longer_than_the_longest(seed: int) -> None:
    problem = random_problem(seed)
    found = Paths.of(problem)
    through = found.head + problem.fastest + found.tail
    assert through.max() <= found.longest * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(200))
def test_no_placement_has_shorter_paths(seed: int) -> None:
    """Against heads, tails and the longest path of every placement of a small problem."""
    problem = random_problem(seed)
    choices = [np.flatnonzero(may) for may in problem.allowed]
    if problem.n > 6 or np.prod([len(choice) for choice in choices]) > 300:
        return
    found = Paths.of(problem)
    for units in product(*choices):
        placement = np.array(units)[problem.unit]
        head, through = placed_paths(problem, placement)
        assert (found.head <= head * (1 + 1e-12)).all()
        assert found.longest <= through.max() * (1 + 1e-12)
        assert (found.tail <= through.max() - head + 1e-9).all()


def placed_paths(
    problem: Problem, placement: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> tuple[Floats, Floats]:
    """(n,) when each op can begin and end at the earliest, where devices are always free."""
    head, end = np.zeros(problem.n), np.zeros(problem.n)
    for op in problem.graph.order:
        end[op] = head[op] + problem.seconds[op, placement[op]]
        for tensor in np.flatnonzero(problem.producer == op).tolist():
            first, last = problem.consumer_start[tensor : tensor + 2]
            for reader in problem.consumers[first:last].tolist():
                moved = problem.transfer_time(tensor, placement[op], placement[reader])
                head[reader] = max(head[reader], end[op] + moved)
    return head, end


def test_on_one_device_nothing_is_sent() -> None:
    assert Paths.of(Problem(fork(5, size=100), devices(1))).longest == 3
    assert Paths.of(Problem(graph(2, []), devices(1))).longest == 1
