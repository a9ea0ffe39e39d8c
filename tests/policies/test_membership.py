"""Whatever groups are drawn, every constraint holds."""

from __future__ import annotations

import numpy as np

from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.policies.membership import Membership
from tests.solvers.families import devices

EVERYWHERE = {"x1": 1.0, "x2": 1.5, "x3": 2.0}


def problem(*ops):
    """On d0, d1 and d2, whose kinds are x1, x2 and x3."""
    return Problem(Graph("small", ops), devices(1, 2, 3))


def op(name, seconds=EVERYWHERE, **changes):
    return Op(name, seconds=seconds, **changes)


def test_ops_of_a_colocation_group_are_one_member():
    both = problem(op("a", group="g"), op("b"), op("c", group="g"))
    membership = Membership(both, 2)
    groups = np.array([1, 0])
    assert membership.of_ops(groups).tolist() == [1, 0, 1]
    assert membership.place(groups, np.array([2, 0])).tolist() == [0, 2, 0]


def test_a_unit_that_one_device_alone_can_run_is_in_no_group():
    pinned = problem(op("a", device="d1"), op("b"))
    membership = Membership(pinned, 4)
    assert membership.free.tolist() == [1]
    assert membership.of_ops(np.array([3])).tolist() == [4, 3]
    assert membership.place(np.array([3]), np.array([0, 0, 0, 2])).tolist() == [1, 2]


def test_a_group_may_go_where_all_of_its_members_can_run():
    some = problem(op("a", {"x1": 1.0, "x2": 1.0}), op("b", {"x2": 1.0, "x3": 1.0}), op("c"))
    membership = Membership(some, 3)
    allowed = membership.allowed(np.array([0, 0, 1]))
    assert allowed[0].tolist() == [False, True, False]
    assert allowed[1].all()


def test_an_empty_group_has_nothing_to_choose():
    allowed = Membership(problem(op("a"), op("b")), 3).allowed(np.array([2, 2]))
    assert allowed.tolist() == [[True, False, False], [True, False, False], [True, True, True]]


def test_without_a_common_device_the_most_members_decide_and_the_others_go_where_they_can_first():
    few, many = {"x1": 2.0, "x2": 1.0}, {"x3": 1.0, "x1": 1.0}
    some = problem(op("a", {"x2": 1.0, "x3": 2.0}), op("b", many), op("c", few), op("e", many))
    membership = Membership(some, 1)
    groups = np.zeros(4, np.int64)
    assert membership.allowed(groups).tolist() == [[True, False, True]]
    assert membership.place(groups, np.array([0])).tolist() == [1, 0, 0, 0]
    assert membership.place(groups, np.array([2])).tolist() == [2, 2, 0, 2]
