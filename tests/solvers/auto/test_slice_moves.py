"""Parts of slices move to devices that idle."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.problem import Problem
from situate.data.slices import Slices
from situate.solvers import OF_SLICES, solve
from situate.solvers.auto.slice_moves import move_slices
from situate.solvers.budget import Budget
from situate.solvers.heuristics.data_parallel import data_parallel
from situate.solvers.search import Search
from tests.solvers.families import chain, devices
from tests.solvers.slices import sliced


def with_cpu(gpus: int) -> Cluster:
    made = [Device(f"gpu{i}", kind="x1") for i in range(gpus)]
    return Cluster("mixed", (*made, Device("cpu", kind="cpu")), (Link("*", "*", 1e6),))


def begun(problem: Problem) -> Search:
    search = Search(problem, budget=Budget(evaluation_limit=2000))
    data_parallel(search)
    return search


def test_what_is_too_much_for_one_device_is_moved_to_another():
    search = begun(Problem(sliced(1, 1, 1), devices(1, 1, bandwidth=1e6)))
    before = search.incumbent.value
    move_slices(search)
    assert before == pytest.approx(8, rel=1e-4)
    assert search.incumbent.value < 7.1


def test_a_cpu_takes_a_part_of_a_slice():
    search = begun(Problem(sliced(2, 2, 0.1), with_cpu(2)))
    before = search.incumbent.value
    move_slices(search)
    assert search.incumbent.value < before


def test_auto_begins_with_whole_slices_on_a_cpu_where_that_is_shorter():
    """Slices take a GPU 16, 16 and 4, and the CPU the last in 16."""
    problem = Problem(sliced(4, 4, 1), with_cpu(2))
    assert solve(problem, "data_parallel").makespan == pytest.approx(20, rel=1e-4)
    search = begun(problem)
    data_parallel.offer_on(search, range(3))
    assert search.incumbent.value == pytest.approx(16, rel=1e-4)
    assert solve(problem, evaluations=50).makespan <= search.incumbent.value


def test_a_step_that_takes_its_batch_whole_is_left_alone():
    problem = Problem(chain(4), devices(1, 1))
    search = Search(problem, budget=Budget(evaluation_limit=100))
    move_slices(search)
    assert search.budget.evaluations == 0


def test_auto_takes_a_graph_of_slices_none_of_whose_ops_says_its_own():
    graph = replace(chain(4), slices=Slices((1, 1)))
    assert solve(Problem(graph, devices(1, 1)), time_limit=None, evaluations=100).makespan == 4


@pytest.mark.parametrize("seconds", [(1, 1), (1, 1, 1), (3, 2, 1)])
@pytest.mark.parametrize("kinds", [(1, 1), (1, 2)])
def test_auto_is_never_behind_what_is_done_by_hand(seconds, kinds):
    problem = Problem(sliced(*seconds, update=1), devices(*kinds, bandwidth=10.0))
    auto = solve(problem, time_limit=None, evaluations=300).value
    assert auto <= min(solve(problem, method).value for method in OF_SLICES)
