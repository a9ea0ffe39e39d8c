"""pymoo's BRKGA, where it is installed."""

from __future__ import annotations

import pytest

from situate.bench.contenders import solve_with
from tests.bench.small import instance


def test_it_finds_a_plan_in_its_time():
    pytest.importorskip("pymoo")
    problem = instance().make()
    result = solve_with(problem, "pymoo_brkga", 0.3, seed=0, threads=1)
    assert result.feasible
    assert result.value >= result.lower_bound
    result.schedule.verify(problem)
