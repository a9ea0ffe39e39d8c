"""Plans of pipelines of slices."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from situate.data.arrays import Order, Placement
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.solvers import solve
from situate.solvers.budget import Budget
from situate.solvers.heuristics.pass_schedules import SCHEDULES
from situate.solvers.search import Search
from situate.solvers.slice_pipelines.offering import SLACKS, offer_slice_pipelines
from tests.solvers.families import OBJECTIVES, RULES, chain, devices
from tests.solvers.parts import training
from tests.solvers.slice_pipelines.uniform import uniform
from tests.solvers.slices import sliced
from tests.solvers.test_solve import check

METHODS = ("gpipe", "one_f_one_b", "interleaved", "zero_bubble", "zero_bubble_h2")


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("method", METHODS)
def test_plans_hold_under_all_rules(method: str, objective: str, rules: str) -> None:
    for cluster in (devices(1, 2), devices(1, 1, memory=60), devices(1)):
        problem = Problem(sliced(2, 1, 1, update=1), cluster, objective, rules)
        check(problem, solve(problem, method))


@pytest.mark.parametrize("method", METHODS)
def test_steps_whose_modules_run_again_go_through_stages(method: str) -> None:
    pytest.importorskip("torch")
    from tests.torch_capture.recompute.models import graph

    problem = Problem(graph("layers.*", cut=True), Cluster.preset("k80-2"))
    check(problem, solve(problem, method))


@pytest.mark.parametrize("method", METHODS)
def test_a_step_that_takes_its_batch_whole_is_refused(method):
    with pytest.raises(SituateError, match="takes its batch whole: give --slices"):
        solve(Problem(chain(3), devices(1, 1)), method)


def test_every_layer_is_where_its_parameter_and_its_update_are():
    problem = Problem(sliced(1, 1, update=1), devices(1, 1))
    result = solve(problem, "one_f_one_b")
    at = dict(zip([op.name for op in problem.graph.ops], result.placement.tolist(), strict=True))
    for layer, other in ("ab", "ba"):
        beside = (f"slice0/{layer}", f"slice1/g{layer}", f"{layer}/add1", f"{layer}/sgd")
        assert {at[name] for name in beside} == {at[layer]} != {at[other]}


def test_slices_of_parts_go_through_teams():
    problem = Problem(training(2, 2, slices=4), devices(1, 1, 1, 1, bandwidth=1e9))
    result = solve(problem, "one_f_one_b")
    at = dict(zip([op.name for op in problem.graph.ops], result.placement.tolist(), strict=True))
    for layer, k in product(range(2), range(2)):
        names = (f"{s}/{name}{layer}/{k}" for s in range(4) for name in ("forward", "late"))
        assert {at[name] for name in names} == {2 * layer + k}
    # Four slices keep each team busy for 12 seconds, and wait for a pass of the other team.
    assert 12 < result.value < 12 + 3


def test_a_stage_is_cut_anew_where_its_device_lacks_memory():
    """Eight slices of three layers each do not fit beside a fourth, as a cut by time has it."""
    problem = uniform(2, 2, chunks=4, memory=9)
    assert solve(problem, "gpipe").feasible
    assert max(solve(uniform(2, 2, chunks=4), "gpipe").schedule.peak) <= 9


def test_every_cut_is_told_what_devices_hold_beyond_what_was_counted():
    problem = Problem(sliced(1, 1, 1, update=1, held=(1, 9)), devices(1, 1, 1, memory=35))
    assert solve(problem, "one_f_one_b").feasible


def test_one_plan_of_each_order_is_offered_however_short_the_time():
    search = Search(uniform(2, 4), budget=Budget(time_limit=0.0))
    offer_slice_pipelines(search, SCHEDULES["one_f_one_b"])
    assert search.incumbent.value == 15


def test_a_pipeline_that_fits_is_decoded_once():
    search = Search(uniform(2, 4), budget=Budget(evaluation_limit=100))
    search.offer(*_alone(search.problem))
    before = search.budget.evaluations
    (placement,) = offer_slice_pipelines(search, SCHEDULES["one_f_one_b"])
    assert search.incumbent.placement.tolist() == placement.tolist()
    # One estimate a cut, and the first is decoded as a plan.
    assert search.budget.evaluations - before == len(SLACKS) + 1


def _alone(problem: Problem) -> tuple[Placement, Order]:
    return np.zeros(problem.n, np.int32), np.array(problem.graph.order, np.int32)


def test_a_limit_of_evaluations_holds():
    assert solve(uniform(2, 4), "interleaved", evaluations=2).evaluations <= 6
