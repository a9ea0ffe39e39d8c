"""Favourite children: at most one of each op, and where a transfer would take longest."""

from __future__ import annotations

import numpy as np
import pytest

from situate import _core
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.simulation.simulator import Simulator
from situate.solvers.heuristics.favourite_children import (
    critical_children,
    favourite_children,
    favourite_program,
)
from tests.oracle.problems import random_problem
from tests.solvers.families import apart, chain, devices, fork, layered
from tests.solvers.programs import needs_highs


@needs_highs
def test_a_chain_is_favourites_all_along() -> None:
    found = favourite_children(Problem(chain(6), devices(1, 1)), None)
    assert found.tolist() == [1, 2, 3, 4, 5, -1]


@needs_highs
def test_of_two_children_the_one_with_the_longer_transfer_is_the_favourite() -> None:
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in "abc")
    tensors = (Tensor("ab", 0, 5, (1,)), Tensor("ac", 0, 3, (2,)))
    assert favourite_children(Problem(Graph("g", ops, tensors), devices(1, 1)), None)[0] == 1


@needs_highs
@pytest.mark.parametrize("seed", range(20))
def test_an_op_is_the_favourite_of_one_op_at_most(seed: int) -> None:
    problem = random_problem(seed)
    found = favourite_children(problem, None)
    chosen = found[found >= 0].tolist()
    assert len(chosen) == len(set(chosen))
    edges = set(problem.graph.edges())
    assert all((op, int(child)) in edges for op, child in enumerate(found) if child >= 0)


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
    found = critical_children(problem, _core.search.upward_rank(Simulator(problem).core))
    children: list[int] = found.tolist()
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
    found = _critical(problem)
    chosen = [child for child in found if child >= 0]
    assert len(chosen) == len(set(chosen))
    edges = set(problem.graph.edges())
    assert all((op, child) in edges for op, child in enumerate(found) if child >= 0)
