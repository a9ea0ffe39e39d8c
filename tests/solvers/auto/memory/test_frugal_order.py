"""For memory the order of least on one device is taken."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

import numpy as np
import pytest

from situate import _core
from situate.data.core_problem import core_problem
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.topology import places, topological_by
from situate.data.tree_order import tree_order
from situate.simulation.decoding import decode, is_topological
from situate.solvers.auto.memory.frugal_order import bytes_in_use, frugal_order
from situate.solvers.budget import Budget
from situate.solvers.search import Search
from tests.data.test_tree_order import tree
from tests.oracle.problems import random_problem
from tests.solvers.families import devices, layered


def alone(small: Graph) -> Problem:
    return Problem(small, devices(1), "memory")


def heavy_path_orders(problem: Problem) -> list[np.ndarray]:
    core = core_problem(problem)
    return [_core.search.heavy_path_order(core, backwards) for backwards in (False, True)]


def post_orders(op: int, inputs: list[list[int]]) -> Iterator[list[int]]:
    """All orders of the tree that ends at an op in which its parts do not take turns."""
    for turn in permutations(inputs[op]):
        for parts in product(*(list(post_orders(each, inputs)) for each in turn)):
            yield [*(each for part in parts for each in part), op]


def plain_tree(n: int, seed: int) -> tuple[Problem, list[list[int]]]:
    """A tree of ops, and what each reads."""
    draw = np.random.default_rng(seed)
    readers = [int(draw.integers(j + 1, n)) for j in range(n - 1)]
    ops = tuple(
        Op(f"op{j}", seconds={"*": 1.0}, workspace=int(draw.integers(0, 9))) for j in range(n)
    )
    sizes = draw.integers(0, 20, n - 1).tolist()
    tensors = tuple(Tensor(f"t{j}", j, sizes[j], (readers[j],)) for j in range(n - 1))
    inputs = [[j for j in range(n - 1) if readers[j] == op] for op in range(n)]
    return alone(Graph("tree", ops, tensors)), inputs


@pytest.mark.parametrize("seed", range(30))
def test_it_is_known_what_an_order_needs(seed: int) -> None:
    drawn = random_problem(seed)
    problem = alone(layered(4, 3, seed, workspace=seed % 3) if seed % 2 else tree(9, seed))
    for order in (problem.depth_first, np.array(problem.graph.order, np.int32)):
        schedule = decode(problem, np.zeros(problem.n, np.int32), order, "serial")
        assert bytes_in_use(problem, order) == schedule.peak[0] - problem.persistent.sum()
    assert bytes_in_use(drawn, drawn.depth_first) >= 0


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_least_memory_is_taken(seed: int) -> None:
    for problem in (alone(layered(5, 4, seed)), alone(tree(40, seed))):
        as_tree = topological_by(problem, places(tree_order(problem).order))
        orders = [problem.depth_first, *heavy_path_orders(problem), as_tree]
        found = frugal_order(Search(problem, budget=Budget(evaluation_limit=9)))
        assert is_topological(problem, found)
        assert bytes_in_use(problem, found) == min(bytes_in_use(problem, o) for o in orders)


def test_without_time_it_is_not_that_of_a_tree() -> None:
    problem = alone(tree(40, 1))
    as_tree = bytes_in_use(problem, tree_order(problem).order)
    assert (
        bytes_in_use(problem, frugal_order(Search(problem, budget=Budget(evaluation_limit=9))))
        == as_tree
    )
    assert (
        bytes_in_use(problem, frugal_order(Search(problem, budget=Budget(time_limit=0.0))))
        > as_tree
    )


@pytest.mark.parametrize("seed", range(40))
def test_heavy_paths_give_topological_orders(seed: int) -> None:
    problem = random_problem(seed)
    assert all(is_topological(problem, order) for order in heavy_path_orders(problem))


@pytest.mark.parametrize("seed", range(30))
def test_in_a_tree_nothing_better_goes_part_by_part(seed: int) -> None:
    problem, inputs = plain_tree(7, seed)
    best = min(
        bytes_in_use(problem, np.array(order)) for order in post_orders(problem.n - 1, inputs)
    )
    assert bytes_in_use(problem, heavy_path_orders(problem)[0]) == best


def test_what_falls_most_goes_first() -> None:
    """A light part that is made first waits beside the heavy one."""
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(4))
    light_first = (Tensor("light", 0, 2, (3,)), Tensor("a", 1, 9, (2,)), Tensor("b", 2, 1, (3,)))
    problem = alone(Graph("two parts", ops, light_first))
    assert heavy_path_orders(problem)[0].tolist() == [1, 2, 0, 3]


def test_backwards_what_falls_most_from_the_end_on_comes_last() -> None:
    """The same graph turned round: what is read early is read before the heavy part is made."""
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(4))
    tensors = (Tensor("b", 0, 1, (1,)), Tensor("light", 0, 2, (3,)), Tensor("a", 1, 9, (2,)))
    problem = alone(Graph("two parts", ops, tensors))
    assert heavy_path_orders(problem)[1].tolist() == [0, 3, 1, 2]
