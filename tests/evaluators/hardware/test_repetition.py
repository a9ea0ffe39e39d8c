"""Repetition of a step."""

from __future__ import annotations

import math

import pytest

from situate.evaluators.hardware.repetition import (
    FEWEST_STEPS,
    MOST_STEPS,
    REPETITIONS,
    TARGET_ERROR,
    enough,
    standard_error,
)

NOISY = [1.0, 2.0]


def test_one_step_is_run_however_little_time_is_left() -> None:
    assert not enough([], 0.0)
    assert enough([1.0], 0.0)


def test_steps_that_agree_are_repeated_least() -> None:
    assert not enough([1.0] * (FEWEST_STEPS - 1), math.inf)
    assert enough([1.0] * FEWEST_STEPS, math.inf)


def test_steps_that_do_not_agree_are_repeated_most() -> None:
    assert not enough((NOISY * MOST_STEPS)[: MOST_STEPS - 1], math.inf)
    assert enough((NOISY * MOST_STEPS)[:MOST_STEPS], math.inf)


def test_short_steps_are_repeated_more() -> None:
    assert not enough([1e-4, 2e-4] * MOST_STEPS, math.inf)


def test_no_step_is_begun_that_would_not_end_in_time() -> None:
    assert enough([1.0], 0.9)
    assert not enough([1.0], 1.1)


def test_the_standard_error_is_that_of_the_mean_over_the_mean() -> None:
    assert standard_error([1.0, 2.0, 3.0]) == pytest.approx(1 / math.sqrt(3) / 2)
    assert math.isnan(standard_error([1.0]))
    assert standard_error([1.0] * FEWEST_STEPS) <= TARGET_ERROR


def test_the_paper_takes_the_mean_of_ten_steps_whatever_they_say() -> None:
    paper = REPETITIONS["paper"]
    steps = [1.0] * 9 + [11.0]
    assert not paper.enough(steps[:9], math.inf)
    assert paper.enough(steps, 0.0)
    assert (paper.time(steps), REPETITIONS["tuned"].time(steps)) == (2.0, 1.0)
