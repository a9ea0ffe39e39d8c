"""Seconds and bytes at each place of a line."""

from __future__ import annotations

import pytest

from situate.data.problem import Problem
from situate.errors import SituateError
from situate.solvers.slice_pipelines.line import line_of
from tests.solvers.families import chain, devices
from tests.solvers.slices import sliced


def test_a_place_has_the_ops_of_all_slices_and_its_parameters_update():
    line = line_of(Problem(sliced(1, 2, update=5), devices(1, 2)))
    assert line.count == 2
    assert line.seconds.tolist() == [[2 * (1 + 2) + 5, 4 * (1 + 2) + 10]] * 2


def test_bytes_are_those_of_parameters_of_what_is_kept_and_of_what_crosses():
    line = line_of(Problem(sliced(1, 1, held=(7, 5)), devices(1)))
    assert line.persistent.tolist() == [7, 5]
    assert line.activations.tolist() == [0, 1]
    assert line.crossing.tolist() == [0, 2 * (1 + 5), 0]


def test_a_step_that_takes_its_batch_whole_is_refused_with_what_to_give():
    with pytest.raises(SituateError, match=r"takes its batch whole: give --slices"):
        line_of(Problem(chain(3), devices(1, 1)))
