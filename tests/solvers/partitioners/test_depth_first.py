"""XLA's depth-first order: post-order, what has many readers behind it first."""

from __future__ import annotations

import pytest

from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers.partitioners.depth_first import depth_first_order
from tests.oracle.problems import random_problem
from tests.solvers.families import chain, devices


def order(graph: Graph) -> list[str]:
    ops = depth_first_order(Problem(graph, devices(1)))
    return [graph.ops[op].name for op in ops]


def ops(names: str) -> tuple[Op, ...]:
    return tuple(Op(name, seconds={"*": 1.0}) for name in names)


@pytest.mark.parametrize("seed", range(30))
def test_it_is_topological(seed: int) -> None:
    problem = random_problem(seed)
    found = depth_first_order(problem).tolist()
    assert sorted(found) == list(range(problem.n))
    assert all(found.index(before) < found.index(after) for before, after in problem.graph.edges())


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
