"""The simulated machine and its noise, sample by sample."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from situate.data.problem import LONGEST, Problem
from situate.errors import SituateError
from situate.evaluators.simulated import SimulatedMachine
from tests.solvers.families import devices, fork

PLACEMENTS = np.zeros((6, 4), np.int32)


def machine(noise: float, seconds: float = 1.0) -> SimulatedMachine:
    return SimulatedMachine(Problem(fork(4, seconds=seconds), devices(1, 1)), noise, seed=3)


# Noise depends on seed and sample number alone, so searches can be resumed.
def test_without_noise_the_same_placement_always_takes_as_long() -> None:
    assert machine(0.0).measure(PLACEMENTS, 0).seconds.tolist() == [4.0] * 6


def test_noise_depends_on_the_samples_number_alone() -> None:
    whole = machine(0.1).measure(PLACEMENTS, 10).seconds
    assert len(np.unique(whole)) == 6
    parts = [machine(0.1).measure(PLACEMENTS[:2], first).seconds for first in (10, 12, 14)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_noise_is_not_what_a_learner_draws_of_the_same_seed_and_sample() -> None:
    noise = np.log(machine(1.0).measure(np.zeros((400, 4), np.int32), 0).seconds / 4)
    factors = [np.random.default_rng([3, sample]).standard_normal() for sample in range(400)]
    assert abs(np.corrcoef(noise, factors)[0, 1]) < 0.2


def test_another_process_measures_the_same() -> None:
    there = pickle.loads(pickle.dumps(machine(0.1)))  # noqa: S301 - made in this line
    here = machine(0.1).measure(PLACEMENTS, 10).seconds
    np.testing.assert_array_equal(there.measure(PLACEMENTS, 10).seconds, here)


def test_the_fastest_are_measured_again_if_times_are_noisy() -> None:
    assert machine(0.1).finalists > machine(0.0).finalists == 0


# The distribution of the noise, and its limits.
def test_the_logarithm_of_noisy_times_is_spread_as_asked() -> None:
    logs = np.log(machine(0.2).measure(np.zeros((2000, 4), np.int32), 0).seconds / 4)
    assert np.abs(logs.mean()) < 0.02
    assert logs.std() == pytest.approx(0.2, rel=0.05)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(("noise", "seconds"), [(1e300, 1e9), (50.0, 1e290)])
def test_a_noisy_time_is_one_that_a_step_can_take(noise: float, seconds: float) -> None:
    noisy = machine(noise, seconds).measure(PLACEMENTS, 0)
    assert noisy.ok.all()
    assert (noisy.seconds <= LONGEST).all()


# Invalid placements and noise are refused.
@pytest.mark.parametrize(
    ("placements", "message"),
    [
        (PLACEMENTS + 0.7, r"integers of shape \(6, 4\), got float64"),
        (PLACEMENTS + np.nan, r"integers of shape \(6, 4\), got float64"),
        (PLACEMENTS[0], r"integers of shape \(4, 4\), got int32 of shape \(4,\)"),
        (PLACEMENTS.astype(np.int64) + 2**32, "sample 8: op .* is placed on device 4294967296"),
    ],
)
def test_an_invalid_placement_is_refused(placements: object, message: str) -> None:
    """A cast to 32 bits makes a device of each."""
    with pytest.raises(SituateError, match=message):
        machine(0.0).measure(placements, 8)


def test_placements_may_be_of_any_integers() -> None:
    expected = machine(0.1).measure(PLACEMENTS, 8).seconds.tolist()
    for step_seconds in (PLACEMENTS.tolist(), np.asfortranarray(PLACEMENTS, np.uint8)):
        assert machine(0.1).measure(step_seconds, 8).seconds.tolist() == expected


@pytest.mark.parametrize("noise", [-0.1, np.inf, np.nan])
def test_noise_that_is_none_is_refused(noise: float) -> None:
    with pytest.raises(SituateError, match="noise: must be finite and not negative"):
        machine(noise)
