from __future__ import annotations

from itertools import pairwise

import numpy as np

from situate import zoo
from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.solvers.auto.blocks import GROUPS, blocks, groups, modules
from tests.solvers import families


def op(name: str, module: str, phase: str = "") -> Op:
    return Op(name, seconds={"*": 1.0}, module=module, phase=phase)


def of(*ops: Op) -> Problem:
    return Problem(Graph("g", ops), families.devices(1, 1))


def test_modules_are_the_units_of_every_part_of_the_path_and_of_its_phases():
    found = modules(
        of(
            op("a", "net.one", "forward"),
            op("b", "net.one", "forward"),
            op("c", "net.two", "backward"),
            op("d", "net.one", "backward"),
            op("e", "", "update"),
        )
    )
    assert found == [(0, 1, 2, 3), (0, 1), (0, 1, 3), (2, 3)]


def test_a_module_path_of_endless_parts_takes_no_time_to_speak_of():
    deep = ".".join("m" * 100_000)
    assert not modules(of(*(op(name, deep) for name in "abc")))


def test_a_unit_is_in_one_group_of_every_scale_at_most():
    found = groups(Problem(families.layered(20, 20, 3), families.devices(1, 1)))
    members = [unit for group in found for unit in group]
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
