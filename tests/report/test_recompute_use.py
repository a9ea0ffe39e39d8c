"""Modules that run again: the time that they take, and the memory that they free."""

from __future__ import annotations

from situate.data.problem import Problem
from situate.report.explain import explain
from situate.report.recompute_use import RecomputeUse, recompute_uses
from situate.solvers import solve
from tests.solvers.families import devices
from tests.solvers.recomputing import LARGE, layered_step


def test_every_module_says_its_time_and_what_is_not_kept():
    problem = Problem(layered_step(3, ("l0", "l2")), devices(1))
    schedule = solve(problem, "single").schedule
    uses = recompute_uses(problem, schedule)
    assert uses == (RecomputeUse("l0", 1, 1.0, LARGE), RecomputeUse("l2", 1, 3.0, LARGE))
    assert explain(problem, schedule).recompute == uses
