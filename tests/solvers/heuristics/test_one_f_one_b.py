"""Forward and backward passes by turns."""

from __future__ import annotations

import pytest

from situate.solvers import solve
from situate.solvers.heuristics.one_f_one_b import passes
from tests.solvers.slice_pipelines.uniform import drawn, uniform


def test_the_passes_are_those_of_the_paper():
    """Two devices and four slices, counted from 0."""
    assert drawn(passes(2, 4, 0)) == "F0 F1 B0 F2 B1 F3 B2 B3"
    assert drawn(passes(2, 4, 1)) == "F0 B0 F1 B1 F2 B2 F3 B3"


def test_few_slices_end_their_way_in_before_any_comes_back():
    assert drawn(passes(4, 2, 0)) == "F0 F1 B0 B1"


@pytest.mark.parametrize(("stages", "slices"), [(2, 4), (4, 8), (4, 16), (8, 16), (8, 32)])
def test_it_takes_what_the_paper_says_and_holds_a_slice_for_each_stage_behind(stages, slices):
    result = solve(uniform(stages, slices, memory=stages), "one_f_one_b")
    assert result.feasible
    assert result.value == 3 * (slices + stages - 1)
    assert sorted(result.schedule.peak) == list(range(1, stages + 1))
