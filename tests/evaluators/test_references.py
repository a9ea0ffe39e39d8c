"""The reference step makes seconds of unequal workers comparable."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.placements import Restrictions
from situate.data.problem import Problem
from situate.evaluators.measurements import Measurements, Origin
from situate.evaluators.references import MAX_EQUAL_RATIO, References, reference_placement
from tests.solvers.families import chain, devices, layered, pinned_and_grouped


def measure_by(*origins: Origin | None) -> Measurements:
    """Ten seconds by each of these."""
    count = len(origins)
    return Measurements(np.full(count, 10.0), np.zeros(count, np.uint8), origins)


# Normalised seconds: relative to the first worker of the study.
def test_seconds_are_those_of_the_worker_that_was_met_first() -> None:
    references = References()
    first, slow = Origin("a", 1.0), Origin("b", 4.0)
    assert references.normalise(measure_by(first, slow)).seconds.tolist() == [10.0, 2.5]
    again = references.normalise(measure_by(slow, first))
    assert again.seconds.tolist() == [2.5, 10.0]
    assert [origin.pace for origin in again.origins if origin] == [4.0, 1.0]


def test_the_first_is_that_of_the_study() -> None:
    normalised = References([Origin("before", 8.0)]).normalise(measure_by(Origin("b", 4.0)))
    assert normalised.seconds.tolist() == [20.0]


@pytest.mark.parametrize("ratio", [1 / MAX_EQUAL_RATIO, 1.0, MAX_EQUAL_RATIO])
def test_workers_that_hardly_differ_are_alike(ratio: float) -> None:
    references = References([Origin("a", 1.0)])
    assert references.normalise(measure_by(Origin("b", ratio))).seconds.tolist() == [10.0]


def test_a_failure_stays_one() -> None:
    failed = Measurements(np.array([np.inf]), np.array([2], np.uint8), (Origin("b", 4.0),))
    normalised = References([Origin("a", 1.0)]).normalise(failed)
    assert np.isinf(normalised.seconds).all()
    assert normalised.outcome.tolist() == [2]


def test_measurements_without_origins_stay() -> None:
    plain = Measurements(np.array([3.0]), np.zeros(1, np.uint8))
    assert References().normalise(plain) is plain
    assert References().normalise(measure_by(None)).seconds.tolist() == [10.0]


# The placement of the reference step.
def test_every_device_has_a_stretch_of_about_equal_work() -> None:
    normalised = reference_placement(Problem(chain(9), devices(1, 1, 1)))
    assert normalised.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_cpus_have_no_part_in_it_beside_accelerators() -> None:
    cpu = Device("cpu", kind="cpu")
    cluster = Cluster("mixed", (Device("a", kind="x1"), cpu), (Link("*", "*", 1.0),))
    assert reference_placement(Problem(chain(4), cluster)).tolist() == [0, 0, 0, 0]


def test_where_it_does_not_fit_one_device_has_everything() -> None:
    small, large = Device("s", kind="x1", memory=1), Device("l", kind="x1", memory=100)
    cluster = Cluster("uneven", (small, large), (Link("*", "*", 1.0),))
    normalised = reference_placement(Problem(chain(4, persistent=1), cluster))
    assert normalised.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "problem",
    [
        Problem(pinned_and_grouped(), devices(1, 2, 1)),
        Problem(layered(4, 3, 1, persistent=1), devices(1, 2, memory=1)),  # fits nowhere
    ],
    ids=["pinned", "too large"],
)
def test_ops_are_where_they_may_be(problem: Problem) -> None:
    normalised = reference_placement(problem)
    checked = Restrictions(problem).check(normalised[None], lambda _: "")
    assert np.array_equal(checked[0], normalised)
