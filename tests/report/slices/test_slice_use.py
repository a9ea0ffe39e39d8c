"""Where slices run, and when."""

from __future__ import annotations

import pytest

from situate.data.problem import Problem
from situate.report.explain import explain
from situate.report.slices.slice_use import slice_uses
from situate.solvers import solve
from tests.solvers.families import chain, devices
from tests.solvers.slices import sliced


def test_every_slice_says_what_it_computes_where_and_when():
    problem = Problem(sliced(2, 1), devices(1, 1, bandwidth=1e9))
    schedule = solve(problem, "data_parallel").schedule
    first, second = slice_uses(problem, schedule)
    assert (first.number, first.samples, first.busy) == (0, 1, {"d0": 8.0})
    assert (second.number, second.busy) == (1, {"d1": 4.0})
    assert second.start == pytest.approx(0)
    assert second.end == pytest.approx(4)
    assert explain(problem, schedule).slices == (first, second)


def test_a_whole_batch_has_none():
    problem = Problem(chain(3), devices(1))
    assert slice_uses(problem, solve(problem, "single").schedule) == ()
