"""Several measurements of a placement become one time."""

from __future__ import annotations

import numpy as np

from situate.solvers.learned.repeats import WINDOW, least_averages


def test_one_measurement_each_is_left_alone():
    times = np.array([3.0, 1.0, 2.0])
    np.testing.assert_array_equal(least_averages(times, 1), times)


def test_it_is_the_smallest_of_the_moving_averages_of_each_placement():
    slow_then_fast = [9.0] * WINDOW + [1.0] * WINDOW
    steady = [4.0] * (2 * WINDOW)
    found = least_averages(np.array(slow_then_fast + steady), 2 * WINDOW)
    np.testing.assert_allclose(found, [1.0, 4.0])


def test_a_placement_cut_short_by_the_budget_has_the_mean_of_what_there_is():
    np.testing.assert_allclose(least_averages(np.array([2.0] * 8 + [1.0, 3.0]), 8), [2.0, 2.0])


def test_an_average_goes_over_five():
    np.testing.assert_allclose(least_averages(np.array([1.0] * 4 + [9.0] * 6), 10), [13 / 5])
