"""Penalties of failures, and rewards of any scale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.errors import MissingExtra
from situate.solvers import LEARNERS, solve
from situate.solvers.learned.learner import Learning, Settings
from situate.solvers.learned.rewards import (
    FAILURE_SECONDS,
    MOST_SECONDS,
    failure_seconds,
    log_rewards,
    normalised,
)
from tests.solvers.families import devices, fork

# A failure costs more than any step, in numbers of single precision.


@pytest.mark.parametrize(
    ("seconds", "counted"),
    [(0.5, FAILURE_SECONDS), (2.0, 10 * 8 * 2.0), (1e290, MOST_SECONDS)],
)
def test_a_failure_is_no_good_step_however_long_steps_are(seconds, counted):
    assert failure_seconds(Problem(fork(8, seconds=seconds), devices(1, 2))) == counted


def _long(seconds: float) -> Graph:
    """Ops that take so long; every other one does not run on the first device."""
    graph = fork(8)
    times = ({"x1": seconds, "x2": seconds}, {"x2": 2 * seconds})
    ops = [structs.replace(op, seconds=times[i % 2]) for i, op in enumerate(graph.ops)]
    return replace(graph, ops=tuple(ops))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("method", LEARNERS)
@pytest.mark.parametrize("settings", ["paper", "tuned"])
def test_a_step_that_no_single_precision_number_holds_crashes_nothing(
    method: str, settings: Settings
) -> None:
    problem = Problem(_long(1e290), devices(1, 2, 2))
    try:
        result = solve(problem, method, evaluations=36, learning=Learning(settings=settings))
    except MissingExtra as missing:
        pytest.skip(str(missing))
    assert np.isfinite(result.samples).all()


# Normalised rewards depend neither on the unit nor on the length of steps.


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
