"""The bound over any placement: below every plan, and exact where memory does not matter."""

from __future__ import annotations

import numpy as np
import pytest

from situate.language.planning.floor import dual_bound, floor_seconds
from tests.language.planning.homes import home_with, planner_of, small_model


def test_without_limits_the_work_is_shared_by_speed():
    seconds = np.tile([1.0, 3.0], (4, 1))
    assert dual_bound(seconds, np.ones(4), np.array([9.0, 9.0])) == pytest.approx(3.0, rel=0.02)


def test_a_full_device_leaves_the_rest_to_the_slow_one():
    seconds = np.tile([1.0, 10.0], (4, 1))
    bound = dual_bound(seconds, np.ones(4), np.array([2.0, 9.0]))
    assert 15.0 < bound <= 20.0 + 1e-9


def test_no_bound_where_nothing_fits():
    assert dual_bound(np.ones((2, 1)), np.ones(2), np.ones(1)) == float("inf")


@pytest.mark.parametrize("mixture", [False, True])
def test_plans_are_above_the_bound(mixture):
    planner = planner_of(small_model(mixture), home_with((0.075, 400, 4), (0.08, 900, 25)))
    assert 0 < floor_seconds(planner) <= planner.plan().seconds
