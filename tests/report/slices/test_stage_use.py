"""The part of the model that each device runs."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.report.explain import explain
from situate.report.slices.stage_use import StageUse, stage_uses
from situate.solvers import solve
from situate.solvers.evaluate import evaluate
from tests.solvers.families import chain, devices
from tests.solvers.slices import sliced


def staged(*seconds: float) -> tuple[StageUse, ...]:
    """Layer a on one device, layer b on another."""
    problem = Problem(sliced(*seconds, update=0.5), devices(1, 1, bandwidth=1e9))
    placement = np.array([op.module == "b" for op in problem.graph.ops], np.int32)
    order = np.array(problem.graph.program_order, np.int32)
    schedule = evaluate(problem, placement, order).schedule
    assert explain(problem, schedule).stages == stage_uses(problem, schedule)
    return stage_uses(problem, schedule)


def test_a_stage_says_what_it_runs_and_for_how_long():
    first, second = staged(2, 1)
    assert (first.device, first.first, first.last, first.slices) == ("d0", "a", "a", 2)
    assert (second.device, second.first, second.last) == ("d1", "b", "b")
    assert (first.forward, first.backward, first.update) == pytest.approx((3, 3, 0.5))


def test_the_first_stage_has_more_slices_in_flight_than_the_last():
    first, second = staged(1, 1, 1, 1)
    assert first.in_flight > second.in_flight >= 1


def test_slices_on_devices_of_their_own_are_one_at_a_time():
    problem = Problem(sliced(1, 1, 1, 1), devices(1, 1, bandwidth=1e9))
    stages = stage_uses(problem, solve(problem, "data_parallel").schedule)
    assert [(stage.slices, stage.first, stage.last) for stage in stages] == [(2, "a", "b")] * 2


def test_a_whole_batch_has_none():
    problem = Problem(chain(3), devices(1))
    assert stage_uses(problem, solve(problem, "single").schedule) == ()
