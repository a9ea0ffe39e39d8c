"""A problem whole and cut."""

from __future__ import annotations

import pytest

from situate.bounds.lower_bound import lower_bound
from situate.data.slices import AutoSlices
from situate.errors import SituateError
from situate.slicing.cuts import Cuts
from tests.slicing.steps import Captured
from tests.solvers.families import devices


# Captures are expensive, so none is repeated.
def test_a_cut_is_captured_once():
    captured = Captured()
    cuts = captured.cuts()
    assert cuts.problem((4, 4)) is cuts.problem((4, 4))
    assert captured.requests == [(4, 4)]


def test_what_failed_once_is_not_captured_again():
    requests = []

    def fails(slices):
        requests.append(slices)
        raise SituateError("no such size")

    cuts = Cuts(Captured().cuts().whole, AutoSlices(), lambda: 8, fails)
    for _ in range(2):
        with pytest.raises(SituateError, match="no such size"):
            cuts.problem((4, 4))
    assert len(requests) == 1


# A bound before a capture must hold after it.
@pytest.mark.parametrize("launch", [0.0, 0.5])
@pytest.mark.parametrize("kinds", [(1, 1), (1, 2), (1, 1, 2)])
@pytest.mark.parametrize("shares", [(), (4, 4), (2, 2, 2, 2), (5, 3), (6, 1, 1)])
def test_what_is_known_before_a_capture_is_a_lower_bound(launch, kinds, shares):
    cuts = Captured(launch).cuts(devices(*kinds))
    assert 0 < cuts.least(shares) <= lower_bound(cuts.problem(shares)) * (1 + 1e-9)


def test_nothing_is_known_of_other_objectives():
    assert Captured().cuts(objective="memory").least((4, 4)) == 0


def test_the_seconds_of_captures_are_counted():
    cuts = Captured().cuts()
    assert cuts.seconds == 0
    cuts.problem((4, 4))
    assert cuts.seconds > 0
