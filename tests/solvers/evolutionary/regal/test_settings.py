"""Settings against those of the paper's best agents (A.14 to A.16)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate.policies.shapes import GraphShape
from situate.solvers.evolutionary.brkga import BRKGA
from situate.solvers.evolutionary.regal.settings import (
    CONSTANTS,
    SETTINGS,
    Proposed,
    RegalSettings,
)

OF_THE_PAPER = [which for which in SETTINGS if which[0] != "tuned"]


# Settings named `paper` hold the numbers of A.14 to A.16.


def test_networks_and_levels_are_those_of_the_best_agents() -> None:
    memory, time, synthetic = (
        SETTINGS[name, objective]
        for name, objective in (("paper", "memory"), ("paper", "time"), ("paper_synthetic", "time"))
    )
    assert memory.shape == GraphShape(32, 16, "plain", "mean")
    assert time.shape == GraphShape(32, 16, "residual", "sum")
    assert synthetic.shape == GraphShape(32, 2, "gru", "mean")
    assert memory.proposed == Proposed(placement=2, scheduling=2)
    assert time.proposed == synthetic.proposed == Proposed(placement=2, scheduling=16)


@pytest.mark.parametrize("which", OF_THE_PAPER)
def test_trainings_are_as_long_and_as_wide(which: tuple[str, str]) -> None:
    of = SETTINGS[which]  # type: ignore[index]
    assert (of.steps, of.batch, of.samples, of.learning_rate) == (100_000, 4, 1, 1e-4)
    assert (of.clip, of.baseline_weight, of.places) == (10, 1e-4, False)
    assert of.breeding == BRKGA["paper"]


@pytest.mark.parametrize("which", OF_THE_PAPER)
def test_a_thousand_evaluations_in_training_and_4600_against_5000_in_validation(
    which: tuple[str, str],
) -> None:
    of = SETTINGS[which]  # type: ignore[index]
    assert (of.proposed_evaluations, of.evaluations) == (1000, 1000)
    valid = of.in_validation
    assert (valid.proposed_evaluations, valid.evaluations) == (4600, 5000)


def test_without_other_evaluations_validation_is_as_training() -> None:
    of = RegalSettings(feature_evaluations=100, evaluations=250)
    assert of.in_validation is of
    assert of.proposed_evaluations == 150


# Constants have a level of each choice of their settings, placement aside.


@pytest.mark.parametrize("which", CONSTANTS)
def test_a_constant_has_a_level_of_each_choice(which: tuple[str, str]) -> None:
    of = CONSTANTS[which]  # type: ignore[index]
    settings = SETTINGS[which]  # type: ignore[index]
    assert of.breeding == settings.breeding
    assert of.proposed == replace(settings.proposed, placement=0)
    for devices in (2, 5):
        choices = of.proposed.choices(devices)
        assert len(of.levels) == len(choices)
        assert all(1 <= level <= k for level, k in zip(of.levels, choices, strict=True))


def test_a_constant_is_named_by_its_pairs_of_levels_and_counts_categories_from_zero() -> None:
    of = replace(CONSTANTS["tuned", "time"], levels=(2, 3, 16, 1))
    assert str(of) == "2 3 / 16 1"
    assert of.actions(3).tolist() == [[1, 2, 15, 0]] * 3
