"""Backward passes in two halves."""

from __future__ import annotations

import numpy as np
import pytest

from situate.bench.families.pipelines import pipeline
from situate.solvers import solve
from situate.solvers.heuristics.zero_bubble import passes
from tests.solvers.slice_pipelines.uniform import drawn, uniform

SIZES = [(2, 4), (4, 8), (4, 16), (8, 16), (8, 32)]


def test_the_passes_are_those_of_the_paper():
    """The first and the last device of ZB-H1 and ZB-H2 with three devices and five slices."""
    first, last = (drawn(passes(3, 5, device, ahead=1)) for device in (0, 2))
    assert first == "F0 F1 F2 I0 W0 F3 I1 W1 F4 I2 W2 I3 W3 I4 W4"
    assert last == "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 F4 I4 W2 W3 W4"
    first, last = (drawn(passes(3, 5, device, ahead=2)) for device in (0, 2))
    assert first == "F0 F1 F2 F3 F4 I0 W0 I1 W1 I2 W2 I3 W3 I4 W4"
    assert last == "F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 W1 W2 W3 W4"


@pytest.mark.parametrize(("stages", "slices"), SIZES)
def test_h1_takes_what_the_paper_says_in_the_memory_of_1f1b(stages, slices):
    result = solve(uniform(stages, slices, memory=stages, split=True), "zero_bubble")
    assert result.feasible
    assert result.value == 3 * slices + stages - 1


@pytest.mark.parametrize(("stages", "slices"), SIZES)
def test_h2_does_not_wait_between_a_devices_first_op_and_its_last(stages, slices):
    result = solve(uniform(stages, slices, memory=2 * stages - 1, split=True), "zero_bubble_h2")
    assert result.feasible
    assert result.value == 3 * slices + stages - 1
    for device in range(stages):
        on = result.placement == device
        assert np.ptp([*result.schedule.start[on], *result.schedule.end[on]]) == 3 * slices


def test_a_backward_pass_that_is_one_op_is_not_cut():
    assert solve(uniform(4, 8), "zero_bubble").value == solve(uniform(4, 8), "one_f_one_b").value


@pytest.mark.parametrize("method", ["gpipe", "one_f_one_b", "zero_bubble", "zero_bubble_h2"])
def test_stages_that_are_pinned_are_where_they_are_pinned(method):
    problem = pipeline(4, 8, split=method.startswith("zero"))
    known = 27 if method.startswith("zero") else 33
    assert solve(problem, method).value == known
