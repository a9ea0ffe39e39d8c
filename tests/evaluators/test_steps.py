"""The steps of one measurement: rules, and repetition until the mean is precise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from situate.evaluators.simulated import SimulatedMachine
from situate.evaluators.steps import (
    MAX_STEPS,
    MIN_STEPS,
    TARGET_ERROR,
    CountsSteps,
    Steps,
    has_enough_steps,
    standard_error,
)
from situate.solvers.learned.rewards import COLOCRL, POST
from tests.evaluators.test_simulated import machine


# The papers' rules, on step times written by hand.
def test_the_mean_of_all_is_the_only_one_where_the_window_is_all() -> None:
    times = np.random.default_rng(0).random((3, 10))
    np.testing.assert_allclose(POST.seconds(times), times.mean(axis=1))


def test_the_least_mean_in_a_row_leaves_out_a_slow_beginning() -> None:
    slow_then_fast = [9.0] * 5 + [1.0] * 5
    steady = [2.0] * 10
    seconds = COLOCRL.seconds(np.array([slow_then_fast, steady]))
    np.testing.assert_allclose(seconds, [1.0, 2.0])


def test_means_are_of_steps_in_a_row() -> None:
    rule = Steps(timed=4, window=2)
    np.testing.assert_allclose(rule.seconds(np.array([[1.0, 9.0, 1.0, 3.0]])), [2.0])


def test_fewer_steps_than_the_window_are_averaged() -> None:
    np.testing.assert_allclose(POST.seconds(np.array([[1.0, 3.0]])), [2.0])


def test_a_rule_says_what_it_measures() -> None:
    assert str(POST) == "mean of 10 steps after 1"
    assert str(COLOCRL) == "least mean of 5 in a row of 10 steps after 5"


def spread(measuring: SimulatedMachine) -> float:
    seconds = measuring.measure(np.zeros((400, 4), np.int32), 0)
    return float(np.log(seconds.seconds / 4).std())


# The rules on the simulated machine.
def test_the_mean_of_ten_noisy_steps_scatters_less_by_the_root_of_ten() -> None:
    noisy = machine(0.1)
    assert isinstance(noisy, CountsSteps)
    assert spread(noisy.by(POST)) == pytest.approx(0.1 / 10**0.5, rel=0.15)
    assert spread(noisy) == pytest.approx(0.1, rel=0.15)


def test_without_noise_the_rule_changes_nothing() -> None:
    quiet = machine(0.0)
    placements = np.zeros((2, 4), np.int32)
    assert quiet.by(POST).measure(placements, 0).seconds.tolist() == [4.0, 4.0]
    assert quiet.by(POST).name == quiet.name


def test_a_noisy_machine_is_called_by_its_rule_and_stays_what_it_was() -> None:
    noisy = machine(0.1)
    assert noisy.by(POST).name == f"{noisy.name}, mean of 10 steps after 1"
    assert noisy.name == machine(0.1).name


NOISY = [1.0, 2.0]


# When a real measurement stops repeating.
def test_one_step_is_run_however_little_time_is_left() -> None:
    assert not has_enough_steps([], 0.0)
    assert has_enough_steps([1.0], 0.0)


def test_steps_that_agree_are_repeated_least() -> None:
    assert not has_enough_steps([1.0] * (MIN_STEPS - 1), math.inf)
    assert has_enough_steps([1.0] * MIN_STEPS, math.inf)


def test_steps_that_do_not_agree_are_repeated_most() -> None:
    assert not has_enough_steps((NOISY * MAX_STEPS)[: MAX_STEPS - 1], math.inf)
    assert has_enough_steps((NOISY * MAX_STEPS)[:MAX_STEPS], math.inf)


def test_short_steps_are_repeated_more() -> None:
    assert not has_enough_steps([1e-4, 2e-4] * MAX_STEPS, math.inf)


def test_no_step_is_begun_that_would_not_end_in_time() -> None:
    assert has_enough_steps([1.0], 0.9)
    assert not has_enough_steps([1.0], 1.1)


def test_as_many_steps_are_run_as_were_asked_for_however_exact_they_are() -> None:
    assert not has_enough_steps([1.0] * 9, math.inf, timed=10)
    assert has_enough_steps([1.0] * 10, math.inf, timed=10)
    assert has_enough_steps([1.0], 0.9, timed=10)


def test_the_standard_error_is_that_of_the_mean_over_the_mean() -> None:
    assert standard_error([1.0, 2.0, 3.0]) == pytest.approx(1 / math.sqrt(3) / 2)
    assert math.isnan(standard_error([1.0]))
    assert standard_error([1.0] * MIN_STEPS) <= TARGET_ERROR
