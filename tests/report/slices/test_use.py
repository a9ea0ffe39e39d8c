"""Slices, stages, replicas and modules that run again, with their devices and times."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.report.explain import explain
from situate.report.explanation_table import explanation_table
from situate.report.slices.use import (
    RecomputeUse,
    ReplicaUse,
    StageUse,
    recompute_uses,
    replica_uses,
    slice_uses,
    stage_uses,
)
from situate.solvers import solve
from situate.solvers.evaluate import evaluate
from tests.report.test_tables import table_text
from tests.solvers.families import chain, devices
from tests.solvers.recomputing import LARGE, layered_step
from tests.solvers.slices import sliced


# Where slices run, and when.
def test_every_slice_says_what_it_computes_where_and_when():
    problem = Problem(sliced(2, 1), devices(1, 1, bandwidth=1e9))
    schedule = solve(problem, "data_parallel").schedule
    first, second = slice_uses(problem, schedule)
    assert (first.number, first.samples, first.busy) == (0, 1, {"d0": 8.0})
    assert (second.number, second.busy) == (1, {"d1": 4.0})
    assert second.start == pytest.approx(0)
    assert second.end == pytest.approx(4)
    assert explain(problem, schedule).slices == (first, second)


def test_a_whole_batch_has_no_slices():
    problem = Problem(chain(3), devices(1))
    assert slice_uses(problem, solve(problem, "single").schedule) == ()


# Where replicas are, and who reads them.
def test_every_replica_says_who_reads_it_and_where_it_is_held():
    graph = sliced(1, 1, 1, held=(3, 4), update=0.5, replicas=(2, 1))
    problem = Problem(graph, devices(1, 2, bandwidth=1e9))
    schedule = solve(problem, "data_parallel").schedule
    first, second = result = replica_uses(problem, schedule)
    assert first == ReplicaUse(0, (0, 2), {"d0": 7}, 1.0)
    assert second == ReplicaUse(1, (1,), {"d1": 7}, 2.0)
    explained = explain(problem, schedule)
    assert explained.replicas == result
    lines = [line.split() for line in table_text(explanation_table(explained)).splitlines()]
    assert ["0", "1.00", "s", "0,", "2", "d0", "7", "B"] in lines


def test_parameters_that_are_there_once_make_none():
    problem = Problem(sliced(1, 1), devices(1))
    assert replica_uses(problem, solve(problem, "single").schedule) == ()


# The part of the model that each device runs.
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


def test_a_whole_batch_has_no_stages():
    problem = Problem(chain(3), devices(1))
    assert stage_uses(problem, solve(problem, "single").schedule) == ()


# Modules that run again: the time that they take, and the memory that they free.
def test_every_module_says_its_time_and_what_is_not_kept():
    problem = Problem(layered_step(3, ("l0", "l2")), devices(1))
    schedule = solve(problem, "single").schedule
    uses = recompute_uses(problem, schedule)
    assert uses == (RecomputeUse("l0", 1, 1.0, LARGE), RecomputeUse("l2", 1, 3.0, LARGE))
    assert explain(problem, schedule).recompute == uses
