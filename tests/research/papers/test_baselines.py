"""The papers' baselines without a policy: they measure as many placements as learners do."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from research.papers import baselines
from research.papers.baselines import Devices
from research.papers.cases import Case
from research.papers.runs import Run

SAMPLES = 125
ALLOWED = np.array([[True, True, True], [False, True, True], [True, False, True]] * 5)
WANTED = np.array([0, 1, 2] * 5)


class Counter:
    """Seconds are one more than the groups that are not where they are wanted."""

    def __init__(self, failing: bool = False) -> None:
        self.failing = failing
        self.batches: list[Devices] = []

    def __call__(self, devices: Devices) -> NDArray[np.float64]:
        self.batches.append(devices.copy())
        seconds = 1.0 + (devices != WANTED).sum(axis=1)
        return np.full(len(devices), np.inf) if self.failing else seconds


def best_time(machine: Counter, seed: int = 0) -> float:
    return baselines.uniform(ALLOWED, machine, SAMPLES, np.random.default_rng(seed))


def test_uniform_draws_measure_as_many_placements_as_they_are_given():
    machine = Counter()
    best_time(machine)
    assert sum(map(len, machine.batches)) == SAMPLES


def test_no_group_is_where_it_may_not_run_and_everywhere_it_may():
    machine = Counter()
    best_time(machine)
    devices = np.concatenate(machine.batches)
    visited = np.zeros(ALLOWED.shape, bool)
    visited[np.arange(len(WANTED)), devices] = True
    np.testing.assert_array_equal(visited, ALLOWED)


def test_they_find_the_least_that_they_measured_and_the_same_for_the_same_seed():
    machine, again = Counter(), Counter()
    assert best_time(machine) == best_time(again)
    devices = np.concatenate(machine.batches)
    assert best_time(machine) == 1 + (devices != WANTED).sum(axis=1).min()


def test_where_nothing_fits_the_seconds_are_infinite():
    assert best_time(Counter(failing=True)) == np.inf


@pytest.mark.parametrize("method", baselines.METHODS)
def test_a_run_says_what_it_was_and_what_it_found(method):
    row = baselines.row(Run(Case("cifar_cnn", 2, "k80"), method, "tuned", 0, 24))
    assert (row["machine"], row["case"], row["samples"]) == ("k80", "cifar_cnn/2", 24)
    assert 0 < row["best"] < 1
