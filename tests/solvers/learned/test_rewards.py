"""Rewards that do not depend on the length of a step."""

from __future__ import annotations

import numpy as np
import pytest

from situate.solvers.learned.rewards import log_rewards, normalised


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_they_have_mean_zero_and_deviation_one_in_any_unit(unit):
    rewards = normalised(log_rewards(unit * np.array([1.0, 2.0, 4.0])))
    np.testing.assert_allclose(rewards, [np.sqrt(1.5), 0, -np.sqrt(1.5)], atol=1e-9)


def test_equal_times_are_no_reason_to_change():
    assert not normalised(log_rewards(np.full(4, 100.0))).any()


def test_a_step_of_no_time_is_finite():
    assert np.isfinite(log_rewards(np.array([0.0, 1.0]))).all()


def test_equal_rewards_are_as_far_from_the_baseline_as_counts():
    assert normalised(np.full(4, -10.0), baseline=-7.0).tolist() == [-1.0] * 4


def test_rewards_that_differ_are_relative_to_their_mean_whatever_the_baseline():
    rewards = np.array([1.0, 3.0])
    assert normalised(rewards, baseline=100.0).tolist() == normalised(rewards).tolist()


def test_a_spread_below_the_least_stays_as_small():
    assert normalised(np.array([0.0, 2.0]), least=4.0).tolist() == [-0.25, 0.25]
