"""Longest paths before and after every op."""

from __future__ import annotations

import dataclasses
import time
from itertools import product

import numpy as np
import pytest
from msgspec import structs

from situate.bounds import paths
from situate.bounds.lower_bound import lower_bound
from situate.bounds.paths import Paths, with_joins
from situate.data.arrays import Floats
from situate.data.cluster import Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.rules import RULES
from tests.oracle.problems import random_problem
from tests.solvers.exhaustive import best_values
from tests.solvers.families import apart, chain, devices, fork, graph


def pinned(small: Graph, *to: str) -> Graph:
    """The graph with its ops on these devices."""
    ops = tuple(structs.replace(op, device=name) for op, name in zip(small.ops, to, strict=True))
    return dataclasses.replace(small, ops=ops)


def test_heads_and_tails_of_a_chain() -> None:
    result = Paths.of(Problem(chain(4, seconds=[1.0, 2.0, 3.0, 4.0]), devices(1, 2)))
    assert result.head.tolist() == [0, 1, 3, 6]
    assert result.tail.tolist() == [9, 7, 4, 0]
    assert result.longest == 10


def test_ops_on_two_devices_have_a_transfer_between_them() -> None:
    """Five bytes at a byte a second, after half a second of latency."""
    small = pinned(chain(3, size=5), "d0", "d1", "d1")
    result = Paths.of(Problem(small, devices(1, 1, latency=0.5)))
    assert result.head.tolist() == [0, 6.5, 7.5]
    assert result.tail.tolist() == [7.5, 1, 0]
    assert result.longest == 8.5


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
    result = Paths.of(problem)
    through = result.head + problem.fastest + result.tail
    assert through.max() <= result.longest * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(200))
def test_no_placement_has_shorter_paths(seed: int) -> None:
    """Against heads, tails and the longest path of every placement of a small problem."""
    problem = random_problem(seed)
    choices = [np.flatnonzero(may) for may in problem.allowed]
    if problem.n > 6 or np.prod([len(choice) for choice in choices]) > 300:
        return
    result = Paths.of(problem)
    for units in product(*choices):
        placement = np.array(units)[problem.unit]
        head, through = placed_paths(problem, placement)
        assert (result.head <= head * (1 + 1e-12)).all()
        assert result.longest <= through.max() * (1 + 1e-12)
        assert (result.tail <= through.max() - head + 1e-9).all()


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


# Joins: heads and tails of ops whose inputs must share a device with them.
MANY = devices(*[1] * 16)


def joined(problem: Problem) -> Paths:
    return with_joins(problem, Paths.of(problem))


def sums(size: int, backwards: bool = False) -> Graph:
    """Four sums of two ops each, whose transfers take so many seconds, and one of them all."""
    edges = [(j, 8 + j // 2) for j in range(8)] + [(8 + j, 12) for j in range(4)]
    if backwards:
        edges = [(12 - after, 12 - before) for before, after in edges]
    slow = range(1, 5) if backwards else range(8)
    small = graph(13, edges, size=size)
    tensors = (structs.replace(t, size=size * (t.producer in slow)) for t in small.tensors)
    return dataclasses.replace(small, tensors=tuple(tensors))


def test_what_is_added_up_runs_one_after_the_other_or_is_sent() -> None:
    assert joined(Problem(sums(size=100), MANY)).longest == 4
    assert joined(Problem(sums(size=0), MANY)).longest == 3


def test_a_transfer_is_paid_where_it_takes_less() -> None:
    quick = dataclasses.replace(MANY, links=(structs.replace(MANY.links[0], bandwidth=2.0),))
    assert joined(Problem(sums(size=1), quick)).longest == 3.5


def test_heads_and_tails_mirror_each_other() -> None:
    forwards = joined(Problem(sums(size=100), MANY))
    backwards = joined(Problem(sums(size=100, backwards=True), MANY))
    assert forwards.head.tolist() == [0] * 8 + [2] * 4 + [3]
    assert np.array_equal(forwards.head, backwards.tail[::-1])
    assert np.array_equal(forwards.tail, backwards.head[::-1])


def test_an_op_far_before_the_join_is_held_too() -> None:
    """Two chains of two ops meet; a transfer anywhere takes a hundred seconds."""
    small = graph(5, [(0, 1), (1, 4), (2, 3), (3, 4)], size=100)
    assert joined(Problem(small, MANY)).head.tolist() == [0, 1, 0, 1, 4]


def test_the_bound_on_the_time_takes_joins_in() -> None:
    assert lower_bound(Problem(sums(size=100), MANY)) == pytest.approx(4)


def test_where_nothing_meets_paths_stay_as_they_are() -> None:
    for problem in (
        Problem(apart(5), MANY),
        Problem(chain(5, size=9), MANY),
        Problem(fork(9), devices(1)),
    ):
        before = Paths.of(problem)
        after = with_joins(problem, before)
        assert np.array_equal(after.head, before.head)
        assert np.array_equal(after.tail, before.tail)
        assert after.longest == before.longest


def test_looking_ends_and_what_is_known_by_then_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(sums(size=100), MANY)
    most, result = joined(problem).head, []
    for work in range(0, 200, 8):
        monkeypatch.setattr(paths, "WORK", work)
        result.append(joined(problem))
        assert (result[-1].head <= most).all()
    assert {paths.longest for paths in result} == {3, 4}


def detour(size: int = 100) -> Problem:
    """Two results meet. All transfers to and from a third device are short, but it takes fifty
    seconds for ops that take the others one."""
    ops = tuple(Op(f"op{j}", seconds={"x1": 1.0, "x50": 50.0}) for j in range(3))
    small = Graph("g", ops, (Tensor("t", 0, size, (2,)), Tensor("u", 1, size, (2,))))
    short = (Link("d2", "*", float("inf")), *devices(1).links)
    return Problem(small, dataclasses.replace(devices(1, 1, 50), links=short[::-1]))


def test_a_device_that_is_soon_reached_and_slow_is_no_way_out() -> None:
    assert Paths.of(detour()).longest == 2
    assert joined(detour()).longest == 3


def test_what_stays_on_a_slow_device_takes_its_time_there() -> None:
    """A chain of two ops and a third meet in a fourth. On the second device the chain takes six
    seconds and a transfer to the first nothing; from the first, transfers take a hundred."""
    times = {"a": 3.0, "b": 3.0, "c": 9.0, "sum": 9.0}
    ops = tuple(Op(name, seconds={"d0": 1.0, "d1": slow}) for name, slow in times.items())
    tensors = (Tensor("a", 0, 100, (1,)), Tensor("b", 1, 100, (3,)), Tensor("c", 2, 100, (3,)))
    links = (Link("d0", "d1", 1.0, both=False), Link("d1", "d0", float("inf"), both=False))
    problem = Problem(Graph("g", ops, tensors), dataclasses.replace(devices(1, 1), links=links))
    assert joined(problem).heads[3].tolist() == [3, 15]
    assert best_values(problem)["time"] == 4


def test_heads_are_those_of_a_device() -> None:
    """Two results meet on one device, where they take a second each, or on one that takes two."""
    small = graph(3, [(0, 2), (1, 2)], size=100)
    assert joined(Problem(small, devices(1, 2))).heads[2].tolist() == [2, 4]


def test_a_group_runs_one_after_the_other() -> None:
    small = graph(3, [(0, 2), (1, 2)], size=0, group="g")
    assert joined(Problem(small, devices(1, 1))).head.tolist() == [0, 0, 2]


def test_no_more_is_found_than_there_is_time_for() -> None:
    problem = Problem(sums(size=100), MANY)
    assert with_joins(problem, Paths.of(problem), until=time.perf_counter()).longest == 3


def seeded_problem(seed: int, rules: str) -> Problem:
    """Half of all pairs of five ops have an edge, whose transfer takes up to six seconds."""
    random = np.random.default_rng(seed)
    edges = [(a, b) for b in range(5) for a in range(b) if random.random() < 0.5]
    small = graph(5, edges, seconds=random.integers(1, 4, 5).astype(float).tolist())
    tensors = tuple(structs.replace(t, size=int(random.integers(7))) for t in small.tensors)
    return Problem(
        dataclasses.replace(small, tensors=tensors), devices(1, 1, 2), rules=RULES[rules]
    )


@pytest.mark.parametrize("rules", ["situate", "regal", "doppler"])
def test_no_plan_of_a_tiny_problem_is_faster(rules: str) -> None:
    raised = 0
    for seed in range(20):
        problem = seeded_problem(seed, rules)
        longest = joined(problem).longest
        assert longest <= best_values(problem)["time"]
        raised += longest > Paths.of(problem).longest
    assert raised >= 8
