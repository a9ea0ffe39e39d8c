"""All slices forward, then all of them back."""

from __future__ import annotations

import pytest

from situate.solvers import solve
from situate.solvers.heuristics.gpipe import passes
from tests.solvers.slice_pipelines.uniform import drawn, uniform


def test_every_device_runs_all_forward_passes_before_any_backward_pass():
    assert [drawn(passes(3, 2, device)) for device in range(3)] == ["F0 F1 B0 B1"] * 3


@pytest.mark.parametrize(("stages", "slices"), [(2, 4), (4, 8), (4, 16), (8, 16), (8, 32)])
def test_it_takes_what_the_paper_says_and_holds_all_activations(stages, slices):
    result = solve(uniform(stages, slices, memory=slices), "gpipe")
    assert result.feasible
    assert result.value == 3 * (slices + stages - 1)
    assert result.schedule.peak.max() == slices
