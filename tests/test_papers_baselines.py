"""The papers' baselines without learning: they measure what learners would, and climb."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.papers import baselines
from benchmarks.papers.baselines import Devices
from benchmarks.papers.cases import Case
from benchmarks.papers.runs import Run

SAMPLES = 125
ALLOWED = np.array([[True, True, True], [False, True, True], [True, False, True]] * 5)
WANTED = np.array([0, 1, 2] * 5)


class Counter:
    """Seconds are one more than the groups that are not where they are wanted; the first batches
    fail."""

    def __init__(self, failing: int = 0) -> None:
        self.failing = failing
        self.batches: list[Devices] = []

    def __call__(self, devices: Devices) -> NDArray[np.float64]:
        self.batches.append(devices.copy())
        seconds = 1.0 + (devices != WANTED).sum(axis=1)
        return seconds if len(self.batches) > self.failing else np.full(len(devices), np.inf)


def found(method: str, machine: Counter, seed: int = 0) -> float:
    return baselines.METHODS[method](ALLOWED, machine, SAMPLES, np.random.default_rng(seed))


@pytest.fixture(params=baselines.METHODS)
def method(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_it_measures_as_many_placements_as_it_is_given(method):
    machine = Counter()
    found(method, machine)
    assert sum(map(len, machine.batches)) == SAMPLES


def test_no_group_is_where_it_may_not_run(method):
    machine = Counter()
    found(method, machine)
    devices = np.concatenate(machine.batches)
    assert ALLOWED[np.arange(len(WANTED)), devices].all()


def test_it_finds_the_least_that_it_measured_and_the_same_for_the_same_seed(method):
    machine, again = Counter(), Counter()
    assert found(method, machine) == found(method, again)
    devices = np.concatenate(machine.batches)
    assert found(method, machine) == 1 + (devices != WANTED).sum(axis=1).min()


def test_hill_climbing_begins_with_everything_on_one_device_as_far_as_it_may():
    machine = Counter()
    found("hill_climbing", machine)
    for device, placement in enumerate(machine.batches[0][:3]):
        assert (placement[ALLOWED[:, device]] == device).all()


def test_hill_climbing_finds_what_uniform_draws_do_not():
    assert found("hill_climbing", Counter()) == 1
    assert found("uniform", Counter()) > 3


def test_hill_climbing_climbs_from_the_first_batch_in_which_something_fits():
    assert found("hill_climbing", Counter(failing=2)) <= 2


def test_where_nothing_fits_the_seconds_are_infinite(method):
    assert found(method, Counter(failing=SAMPLES)) == np.inf


def test_neighbours_differ_in_few_groups():
    devices = WANTED.astype(np.int32)
    near = baselines.neighbours(devices, ALLOWED, 500, np.random.default_rng(0))
    changed = (near != devices).sum(axis=1)
    assert changed.max() == baselines.MOST_CHANGED


def test_a_run_says_what_it_was_and_what_it_found(method):
    row = baselines.row(Run(Case("cifar_cnn", 2, "k80"), method, "tuned", 0, 24))
    assert (row["machine"], row["case"], row["samples"]) == ("k80", "cifar_cnn/2", 24)
    assert 0 < row["best"] < 1
