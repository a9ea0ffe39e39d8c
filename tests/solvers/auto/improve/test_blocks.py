"""Blocks of units, and moves of those of one slice."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from situate import zoo
from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.data.slices import Slices
from situate.solvers import OF_SLICES, solve
from situate.solvers.auto.improve.blocks import GROUPS, blocks, groups, modules, move_slices
from situate.solvers.budget import Budget
from situate.solvers.heuristics.data_parallel import data_parallel, offer_on
from situate.solvers.search import Search
from tests.solvers import families
from tests.solvers.families import chain, devices
from tests.solvers.slices import sliced


def op(name: str, module: str, phase: str = "") -> Op:
    return Op(name, seconds={"*": 1.0}, module=module, phase=phase)


def of(*ops: Op) -> Problem:
    return Problem(Graph("g", ops), families.devices(1, 1))


def test_modules_are_the_units_of_every_part_of_the_path_and_of_its_phases():
    result = modules(
        of(
            op("a", "net.one", "forward"),
            op("b", "net.one", "forward"),
            op("c", "net.two", "backward"),
            op("d", "net.one", "backward"),
            op("e", "", "update"),
        )
    )
    assert result == [(0, 1, 2, 3), (0, 1), (0, 1, 3), (2, 3)]


def test_a_module_path_of_endless_parts_takes_no_time_to_speak_of():
    deep = ".".join("m" * 100_000)
    assert not modules(of(*(op(name, deep) for name in "abc")))


def test_a_unit_is_in_one_group_of_every_scale_at_most():
    result = groups(Problem(families.layered(20, 20, 3), families.devices(1, 1)))
    members = [unit for group in result for unit in group]
    assert max(members.count(unit) for unit in set(members)) == len(GROUPS)


def test_about_as_many_blocks_are_groups_as_modules():
    problem = Problem(zoo.load("inception_v3"), Cluster.preset("k80-2"))
    turns, parts = blocks(problem).turns, len(modules(problem))
    assert 1.8 < len(turns) / parts < 2.2
    assert sorted(turns[:parts].tolist()) == list(range(parts))
    assert np.ptp(np.unique(turns[parts:], return_counts=True)[1]) == 0


def test_units_of_a_block_differ_and_blocks_are_neither_one_unit_nor_all():
    problem = Problem(zoo.load("resnet50"), Cluster.preset("k80-2"))
    start, units, _ = blocks(problem)
    for begin, end in pairwise(start):
        assert 1 < len(np.unique(units[begin:end])) == end - begin < problem.units


def test_a_network_of_one_op_has_no_blocks():
    start, units, turns = blocks(of(op("a", "net")))
    assert start.tolist() == [0]
    assert units.size == turns.size == 0


def with_cpu(gpus: int) -> Cluster:
    made = [Device(f"gpu{i}", kind="x1") for i in range(gpus)]
    return Cluster("mixed", (*made, Device("cpu", kind="cpu")), (Link("*", "*", 1e6),))


def begun(problem: Problem) -> Search:
    search = Search(problem, budget=Budget(evaluation_limit=2000))
    data_parallel(search)
    return search


# Parts of slices move to devices that idle.
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
    offer_on(search, range(3))
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
