"""Rewards that do not depend on the length of a step."""

from __future__ import annotations

import numpy as np
import pytest

from situate.solvers.learned.rewards import normalised


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_they_have_mean_zero_and_deviation_one_in_any_unit(unit):
    rewards = normalised(unit * np.array([1.0, 2.0, 4.0]))
    np.testing.assert_allclose(rewards, [np.sqrt(1.5), 0, -np.sqrt(1.5)], atol=1e-9)


def test_equal_times_are_no_reason_to_change():
    assert not normalised(np.full(4, 100.0)).any()


def test_a_step_of_no_time_is_finite():
    assert np.isfinite(normalised(np.array([0.0, 1.0]))).all()
