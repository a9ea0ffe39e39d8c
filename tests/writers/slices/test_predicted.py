"""Predicted figures of a pipeline in an order of passes."""

from __future__ import annotations

import warnings

import pytest

from situate.report.slices.stages import slice_stages
from situate.writers.slices.order import followers, in_order, middles
from situate.writers.slices.passes import passes_of_ops, stage_of_ops
from situate.writers.slices.predicted import warn_of_figures
from tests.writers.slices.staged import SPLIT, on, staged, staged_plan, weights_last


def warning_lines(devices=SPLIT, key=None, moments=None) -> list[str]:
    """The warnings of a plan whose passes go by its own moments, or by these."""
    problem = on(staged(2))
    plan = staged_plan(problem, devices, key)
    stages = slice_stages(problem, plan)
    stage = stage_of_ops(problem.graph, stages)
    of_op = passes_of_ops(problem, stage, plan)
    waiting = followers(problem.graph, of_op, len(stages), 2)
    order = in_order(waiting, middles(plan, of_op) if moments is None else moments)
    with warnings.catch_warnings(record=True) as lines:
        warnings.simplefilter("always")
        warn_of_figures(problem, plan, stages, stage, of_op, order)
    return [str(line.message) for line in lines]


def test_a_plan_of_whole_passes_takes_as_long():
    (line,) = warning_lines()
    assert "predicted step 25.0 s (the plan's 25.0 s)" in line  # memory alone differs


def test_another_order_takes_longer():
    (line,) = warning_lines(key=weights_last, moments={})
    own = warning_lines(key=weights_last)
    assert not own
    assert line.startswith("of the pipeline: predicted step")


def test_stages_that_cannot_run_where_they_are_have_no_schedule():
    problem = on(staged(2))
    plan = staged_plan(problem)
    stages = slice_stages(problem, plan)
    stage = stage_of_ops(problem.graph, stages)
    of_op = passes_of_ops(problem, stage, plan)
    problem.seconds[:, 1] = float("inf")
    with pytest.warns(UserWarning, match="the pipeline has no schedule"):
        warn_of_figures(
            problem,
            plan,
            stages,
            stage,
            of_op,
            in_order(followers(problem.graph, of_op, 2, 2), {}),
        )
