"""The rest that the fastest device cannot hold goes where that costs least."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers.auto.segments import offer_segments, outgrown
from situate.solvers.budget import Budget
from situate.solvers.search import Search

LAYERS = 20


def training(memory: int, kept: dict[int, int] | None = None, small: int = 80) -> Problem:
    """Layers that take a second each way on the fast GPU and three on the slow one, and keep a byte
    each, or so many: the second most, unless others are told."""
    phases = ["forward"] * LAYERS + ["backward"] * LAYERS
    seconds = {"x1": 1.0, "x2": 3.0}
    ops = [Op(f"op{j}", phase=phase, seconds=seconds) for j, phase in enumerate(phases)]
    last = 2 * LAYERS - 1
    size = dict.fromkeys(range(LAYERS), 1) | (kept or {1: 50})
    tensors = [Tensor(f"t{j}", j, size[j], (j + 1, last - j)) for j in range(LAYERS - 1)]
    tensors += [Tensor(f"g{j}", j, 1, (j + 1,)) for j in range(LAYERS - 1, last)]
    devices = Device("big", kind="x1", memory=memory), Device("small", kind="x2", memory=small)
    return Problem(
        Graph("training", tuple(ops), tuple(tensors)),
        Cluster("unequal", devices, (Link("*", "*", 1e4),)),
    )


def offered(problem: Problem, evaluations: int = 10_000) -> Search:
    search = Search(problem, budget=Budget(evaluation_limit=evaluations), threads=1)
    search.offer(np.ones(problem.n, np.int32), np.array(problem.graph.order, np.int32))
    if outgrown(search):
        offer_segments(search)
    return search


def test_what_keeps_most_bytes_goes_to_the_slow_device() -> None:
    search = offered(training(60))
    assert search.best is not None
    assert search.best.feasible
    assert 0 < np.count_nonzero(search.best.placement) <= 2
    assert search.best.value < 2 * LAYERS + 5
    assert search.budget.evaluations < 400


def test_where_nothing_else_fits_a_stretch_may_be_most_of_the_network() -> None:
    ends, middle = {0: 100, LAYERS - 2: 100}, {3: 300, LAYERS - 5: 300}
    search = offered(training(250, ends | middle, small=650), 1600)
    assert search.best is not None
    assert search.best.feasible


def test_nothing_is_offered_where_the_fast_device_holds_all() -> None:
    assert offered(training(1000)).budget.evaluations == 3


def test_a_share_of_the_budget_ends_it() -> None:
    assert offered(training(60), 100).budget.evaluations < 40


def test_it_is_for_the_shortest_step() -> None:
    problem = training(60)
    loads = Problem(problem.graph, problem.cluster, "throughput")
    assert offered(loads).budget.evaluations == 2


@pytest.mark.filterwarnings("error")
def test_a_device_that_can_run_nothing_is_no_division_by_zero() -> None:
    problem = training(60)
    ops = tuple(structs.replace(op, seconds={"x1": 1.0}) for op in problem.graph.ops)
    graph = Graph("training", ops, problem.graph.tensors)
    search = Search(Problem(graph, problem.cluster), budget=Budget(evaluation_limit=100), threads=1)
    search.offer(np.zeros(len(ops), np.int32), np.array(graph.order, np.int32))
    offer_segments(search)
    assert search.best is not None
    assert not search.best.feasible
