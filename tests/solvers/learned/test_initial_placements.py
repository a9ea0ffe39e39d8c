from __future__ import annotations

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.grouping import make_groups
from situate.solvers.learned.initial_placements import InitialPlacements, initial_placements
from situate.solvers.learned.learner import Learning
from tests.solvers.families import chain, devices


@pytest.fixture
def problem():
    return Problem(chain(4), devices(1, 1, 2))


@pytest.fixture
def groups(problem):
    return make_groups(problem, np.arange(problem.units) // 2)


def put(first, k=6):
    drawn = np.full((k, 2), 9, np.int32)
    first.write_into(drawn)
    return drawn.tolist()


# A start plan comes first, then each device alone, as far as groups may run there.


def test_without_a_plan_they_are_single_devices(groups):
    first = InitialPlacements(groups)
    assert len(first) == 3
    assert put(first) == [[0, 0], [1, 1], [2, 2], [9, 9], [9, 9], [9, 9]]


def test_a_plan_comes_before_them(groups):
    first = InitialPlacements(groups, lambda: np.array([2, 0], np.int32))
    assert len(first) == 4
    assert put(first, 3) == [[2, 0], [0, 0], [1, 1]]


def test_where_a_group_may_not_go_it_stays_where_it_was_drawn(groups):
    groups.allowed[1, 0] = False
    assert put(InitialPlacements(groups), 2) == [[0, 9], [1, 1]]


def test_a_plan_of_ops_becomes_one_of_groups_by_where_their_seconds_are(problem, groups):
    placement = np.array([1, 1, 0, 2], np.int32)  # device 2 is the slower
    first = initial_placements(problem, Learning(start=lambda: placement), groups)
    assert put(first, 1) == [[1, 2]]


def test_a_plan_is_made_when_it_is_put(problem, groups):
    def start():
        raise AssertionError

    first = initial_placements(problem, Learning(start=start), groups)
    with pytest.raises(AssertionError):
        put(first)
