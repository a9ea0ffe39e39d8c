"""BRKGA-MP-IPR, where it is installed."""

from __future__ import annotations

import pytest

from situate.bench.contenders import solve_with
from tests.bench.small import instance


def test_it_finds_a_plan_in_its_time():
    pytest.importorskip("brkga_mp_ipr")
    problem = instance().make()
    result = solve_with(problem, "brkga_mp_ipr", 0.3, seed=0, threads=1)
    assert result.feasible
    assert result.value >= result.lower_bound
    result.schedule.verify(problem)
