"""Favourite children, by the linear program or by rank."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from situate import _core
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.simulation.simulator import Simulator
from situate.solvers.heuristics.favourite_children import (
    FavouriteProgram,
    critical_children,
    favourite_children,
    favourite_program,
)
from tests.oracle.problems import random_problem
from tests.solvers.families import apart, chain, devices, fork, layered
from tests.solvers.programs import needs_highs


def program(seconds: list[float], edges: list[tuple[int, int, float]]) -> FavouriteProgram:
    producer, consumer, transfer = (np.array(column) for column in zip(*edges, strict=True))
    return FavouriteProgram(
        np.array(seconds, np.float64),
        producer.astype(np.int64),
        consumer.astype(np.int64),
        transfer.astype(np.float64),
        np.ones(len(edges), np.bool_),
    )


def longest(of: FavouriteProgram, apart: np.ndarray) -> float:
    """The makespan of starts that these x allow, edges being in topological order."""
    start = np.zeros(len(of.seconds))
    for e in np.argsort(of.producer, kind="stable"):
        i, j = of.producer[e], of.consumer[e]
        start[j] = max(start[j], start[i] + of.seconds[i] + of.transfer[e] * apart[e])
    return float((start + of.seconds).max())


def drawn(seed: int) -> FavouriteProgram:
    rng = np.random.default_rng(seed)
    edges = [(i, j, float(rng.integers(1, 9))) for i in range(6) for j in range(i + 1, 6)]
    some = [edge for edge in edges if rng.random() < 0.5] or edges[:1]
    return program(rng.integers(1, 9, 6).tolist(), some)


# The linear program of favourite children is that of the paper.
@needs_highs
@pytest.mark.parametrize("seed", range(20))
def test_it_is_a_relaxation(seed: int) -> None:
    """No choice of favourites in whole numbers has a shorter makespan, and at most one edge of each
    op is nearer to 0 than to 1."""
    of = drawn(seed)
    x = of.apart(None)
    for ends in (of.producer, of.consumer):
        for op in range(6):
            mine = x[ends == op]
            assert mine.sum() >= len(mine) - 1 - 1e-6
            assert (mine < 0.5 - 1e-6).sum() <= 1
    edges = len(x)
    whole = [
        longest(of, np.array(choice))
        for choice in product((0, 1), repeat=min(edges, 10))
        if edges <= 10
        and all(
            sum(1 - c for c, end in zip(choice, ends, strict=True) if end == op) <= 1
            for ends in (of.producer, of.consumer)
            for op in range(6)
        )
    ]
    assert longest(of, x) <= min(whole, default=np.inf) + 1e-6


@needs_highs
def test_of_two_equal_children_one_or_none_is_close() -> None:
    x = program([1, 1, 1], [(0, 1, 4), (0, 2, 4)]).apart(None)
    assert x.sum() == pytest.approx(1)


@needs_highs
def test_edges_that_are_not_free_cost_nothing_and_take_no_favour() -> None:
    of = program([1, 1, 1], [(0, 1, 0), (0, 2, 4)])
    of.free[0] = False
    assert of.apart(None).tolist() == [0, 0]


@needs_highs
def test_without_time_all_are_apart() -> None:
    assert drawn(1).apart(0.0).min() == 1


@needs_highs
@pytest.mark.parametrize("seconds", [1e-300, 1e290])
def test_numbers_of_any_size_are_taken(seconds: float) -> None:
    x = program([seconds] * 3, [(0, 1, 4 * seconds), (0, 2, seconds / 1e15)]).apart(None)
    assert x[0] == pytest.approx(0)


@needs_highs
def test_nothing_is_written_to_the_screen(capfd: pytest.CaptureFixture[str]) -> None:
    drawn(2).apart(None)
    assert capfd.readouterr() == ("", "")


# Favourite children: at most one of each op, and where a transfer would take longest.
@needs_highs
def test_a_chain_is_favourites_all_along() -> None:
    result = favourite_children(Problem(chain(6), devices(1, 1)), None)
    assert result.tolist() == [1, 2, 3, 4, 5, -1]


@needs_highs
def test_of_two_children_the_one_with_the_longer_transfer_is_the_favourite() -> None:
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in "abc")
    tensors = (Tensor("ab", 0, 5, (1,)), Tensor("ac", 0, 3, (2,)))
    assert favourite_children(Problem(Graph("g", ops, tensors), devices(1, 1)), None)[0] == 1


@needs_highs
@pytest.mark.parametrize("seed", range(20))
def test_an_op_is_the_favourite_of_one_op_at_most(seed: int) -> None:
    problem = random_problem(seed)
    result = favourite_children(problem, None)
    chosen = result[result >= 0].tolist()
    assert len(chosen) == len(set(chosen))
    edges = set(problem.graph.edges())
    assert all((op, int(child)) in edges for op, child in enumerate(result) if child >= 0)


@needs_highs
def test_none_is_a_favourite_where_there_is_no_time() -> None:
    assert (favourite_children(Problem(layered(9, 9, 1), devices(1, 1)), 0.0) == -1).all()


@needs_highs
def test_none_is_a_favourite_without_edges() -> None:
    assert (favourite_children(Problem(apart(5), devices(1, 1)), None) == -1).all()


@needs_highs
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_unit_of_time_changes_nothing(scale: float) -> None:
    """A power of two near the scale, so that no product is rounded."""
    scale = 2.0 ** round(np.log2(scale))
    plain = Problem(layered(5, 5, 1), devices(1, 1))
    ops = tuple(
        Op(op.name, seconds={kind: s * scale for kind, s in op.seconds.items()})  # type: ignore[union-attr]
        for op in plain.graph.ops
    )
    scaled = Problem(Graph("g", ops, plain.graph.tensors), devices(1, 1, bandwidth=1 / scale))
    assert np.array_equal(favourite_children(plain, None), favourite_children(scaled, None))


def test_tensors_between_two_ops_add_up() -> None:
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in "ab")
    tensors = (Tensor("s", 0, 2, (1,)), Tensor("t", 0, 3, (1,)))
    program = favourite_program(Problem(Graph("g", ops, tensors), devices(1, 1)))
    assert program.transfer.tolist() == [5]


def test_sources_without_work_are_left_out() -> None:
    ops = (Op("w", seconds={"*": 0.0}), Op("a", seconds={"*": 1.0}))
    program = favourite_program(Problem(Graph("g", ops, (Tensor("w", 0, 1, (1,)),)), devices(1, 1)))
    assert len(program.producer) == 0


def test_ops_of_a_group_are_not_apart() -> None:
    ops = tuple(Op(name, seconds={"*": 1.0}, group="g") for name in "ab")
    program = favourite_program(Problem(Graph("g", ops, (Tensor("t", 0, 9, (1,)),)), devices(1, 1)))
    assert (program.transfer.tolist(), program.free.tolist()) == ([0], [False])


def test_seconds_are_means_over_the_accelerators_that_may_run_an_op() -> None:
    ops = (
        Op("both", seconds={"d0": 1.0, "d1": 3.0, "d2": 99.0}),
        Op("pinned", seconds={"*": 5.0}, device="d1"),
        Op("cpu", seconds={"d2": 7.0}),
    )
    cluster = devices(1, 1, 1)
    as_cpu = type(cluster.devices[2])("d2", kind="cpu")
    cluster = type(cluster)("c", (*cluster.devices[:2], as_cpu), cluster.links)
    assert favourite_program(Problem(Graph("g", ops), cluster)).seconds.tolist() == [2, 5, 7]


def test_a_signal_takes_the_synchronisation() -> None:
    slow = devices(1, 1, latency=9.0, synchronisation=0.5)
    graph = Graph("g", fork(2).ops, control=((0, 1),))
    assert favourite_program(Problem(graph, slow)).transfer.tolist() == [0.5]


def _critical(problem: Problem) -> list[int]:
    result = critical_children(problem, _core.search.upward_rank(Simulator(problem).core))
    children: list[int] = result.tolist()
    return children


def test_the_longest_rest_is_behind_a_critical_child() -> None:
    """The one of two children with equal transfers that works longer."""
    ops = tuple(Op(name, seconds={"*": s}) for name, s in (("a", 1.0), ("b", 1.0), ("c", 5.0)))
    problem = Problem(Graph("g", ops, (Tensor("a", 0, 3, (1, 2)),)), devices(1, 1))
    assert _critical(problem) == [2, -1, -1]


def test_of_two_ops_the_higher_one_has_their_child() -> None:
    ops = tuple(Op(name, seconds={"*": s}) for name, s in (("a", 1.0), ("b", 5.0), ("c", 1.0)))
    tensors = (Tensor("a", 0, 3, (2,)), Tensor("b", 1, 3, (2,)))
    assert _critical(Problem(Graph("g", ops, tensors), devices(1, 1))) == [-1, 2, -1]


@pytest.mark.parametrize("seed", range(20))
def test_critical_children_are_children_of_one_op_each(seed: int) -> None:
    problem = random_problem(seed)
    result = _critical(problem)
    chosen = [child for child in result if child >= 0]
    assert len(chosen) == len(set(chosen))
    edges = set(problem.graph.edges())
    assert all((op, child) in edges for op, child in enumerate(result) if child >= 0)
