"""Orders regrouped use no more memory than before, and parts are put in their best order."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from situate import _core
from situate.data.cluster import Cluster
from situate.data.core_problem import core_problem
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.simulation.decoding import is_topological
from situate.solvers import solve
from situate.solvers.auto.memory.frugal_order import bytes_in_use
from situate.solvers.auto.memory.regrouping import offer_regrouped
from situate.solvers.budget import Budget
from situate.solvers.search import Search
from situate.zoo import load
from tests.data.test_tree_order import tree
from tests.oracle.problems import random_problem
from tests.solvers.exhaustive import optimum
from tests.solvers.families import devices, layered


def alone(small: Graph) -> Problem:
    return Problem(small, devices(1), "memory")


def regrouped(problem: Problem, order: np.ndarray, target: int = 0, sets: int = 20_000):
    core = core_problem(problem)
    return _core.search.regrouped_order(core, order, target=target, sets=sets, seconds=math.inf)


def in_program_order(problem: Problem) -> np.ndarray:
    return np.array(problem.graph.order, np.int32)


def branches(count: int) -> Problem:
    """Parts that meet in the end; each makes nine bytes and keeps one. Ops of one kind come
    first, as layers do in an unrolled network."""
    n = 2 * count + 1
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(n))
    wide = [Tensor(f"wide{j}", j, 9, (count + j,)) for j in range(count)]
    narrow = [Tensor(f"narrow{j}", count + j, 1, (n - 1,)) for j in range(count)]
    return alone(Graph("branches", ops, (*wide, *narrow)))


@pytest.mark.parametrize("seed", range(40))
def test_it_is_topological_and_uses_no_more(seed: int) -> None:
    problem = random_problem(seed) if seed % 2 else alone(layered(30, 6, seed))
    for before in (in_program_order(problem), problem.depth_first):
        after = regrouped(problem, before)
        assert is_topological(problem, after)
        assert bytes_in_use(problem, after) <= bytes_in_use(problem, before)


@pytest.mark.parametrize("seed", range(20))
def test_few_ops_come_in_their_best_order(seed: int) -> None:
    problem = alone(layered(3, 2, seed, workspace=seed % 4) if seed % 2 else tree(7, seed))
    found = bytes_in_use(problem, regrouped(problem, in_program_order(problem)))
    assert found + problem.persistent.sum() == optimum(problem)


@pytest.mark.parametrize("count", [20, 100])
def test_parts_of_any_length_are_regrouped(count: int) -> None:
    """From all at once to one after the other."""
    problem = branches(count)
    assert bytes_in_use(problem, in_program_order(problem)) == 9 * count + 1
    assert bytes_in_use(problem, regrouped(problem, in_program_order(problem))) == count + 9


def test_it_ends_where_few_enough_are_in_use() -> None:
    problem = branches(100)
    order = in_program_order(problem)
    enough = bytes_in_use(problem, order)
    assert np.array_equal(regrouped(problem, order, target=enough), order)
    assert np.array_equal(regrouped(problem, order, sets=0), order)


def test_an_order_that_is_none_is_refused() -> None:
    problem = branches(3)
    with pytest.raises(ValueError, match="order"):
        regrouped(problem, in_program_order(problem)[::-1].copy())


def test_auto_certifies_a_network_that_needs_another_order() -> None:
    cluster = Cluster.preset("a100-pcie-4")
    device = structs.replace(cluster.devices[0], memory=None)
    one = replace(cluster, devices=(device,), links=())
    result = solve(Problem(load("cifar_cnn"), one, "memory"), time_limit=None, evaluations=30)
    assert result.optimal
    result.schedule.verify(result.problem)


def test_where_a_search_for_time_fits_nothing_the_order_is_regrouped() -> None:
    problem = branches(100)
    small = replace(problem, objective="time", cluster=devices(1, memory=109))
    search = Search(small, budget=Budget(evaluation_limit=20))
    search.offer(np.zeros(small.n, np.int32), in_program_order(small))
    assert not search.incumbent.feasible
    offer_regrouped(search)
    assert search.incumbent.feasible


def test_plans_on_several_devices_are_tried_in_the_regrouped_order() -> None:
    problem = replace(branches(100), cluster=devices(1, 1))
    search = Search(problem, budget=Budget(evaluation_limit=20))
    halves = np.repeat([0, 1], [100, 101]).astype(np.int32)
    with search.trying(in_program_order(problem)):
        search.offer(halves, in_program_order(problem))
        offer_regrouped(search)
        assert bytes_in_use(problem, search.second_order) == 109


def test_where_parameters_alone_count_there_is_nothing_to_do() -> None:
    problem = replace(branches(9), rules="dnn-partitioning")
    search = Search(problem, budget=Budget(evaluation_limit=20))
    search.offer(np.zeros(problem.n, np.int32), in_program_order(problem))
    before = search.budget.evaluations
    offer_regrouped(search)
    assert search.budget.evaluations == before
