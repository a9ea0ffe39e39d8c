"""The reference step takes all accelerators where it fits, and runs wherever ops may."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.placements import Restrictions
from situate.data.problem import Problem
from situate.evaluators.hardware.reference import reference_placement
from tests.solvers.families import chain, devices, layered, pinned_and_grouped


def test_every_device_has_a_stretch_of_about_equal_work() -> None:
    found = reference_placement(Problem(chain(9), devices(1, 1, 1)))
    assert found.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_cpus_have_no_part_in_it_beside_accelerators() -> None:
    cpu = Device("cpu", kind="cpu")
    cluster = Cluster("mixed", (Device("a", kind="x1"), cpu), (Link("*", "*", 1.0),))
    assert reference_placement(Problem(chain(4), cluster)).tolist() == [0, 0, 0, 0]


def test_where_it_does_not_fit_one_device_has_everything() -> None:
    small, large = Device("s", kind="x1", memory=1), Device("l", kind="x1", memory=100)
    cluster = Cluster("uneven", (small, large), (Link("*", "*", 1.0),))
    found = reference_placement(Problem(chain(4, persistent=1), cluster))
    assert found.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "problem",
    [
        Problem(pinned_and_grouped(), devices(1, 2, 1)),
        Problem(layered(4, 3, 1, persistent=1), devices(1, 2, memory=1)),  # fits nowhere
    ],
    ids=["pinned", "too large"],
)
def test_ops_are_where_they_may_be(problem: Problem) -> None:
    found = reference_placement(problem)
    checked = Restrictions(problem).check(found[None], lambda _: "")
    assert np.array_equal(checked[0], found)
