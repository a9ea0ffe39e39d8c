"""Passes of slices, and the ops in their order."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.simulation.decoding import is_topological
from situate.solvers.heuristics.pass_schedules import (
    gpipe_passes,
    interleaved_passes,
    one_f_one_b_passes,
    zero_bubble_passes,
)
from situate.solvers.slice_pipelines.passes import OpOrders, Pass, in_flight, ranks
from situate.solvers.slice_pipelines.stages import line_of
from tests.solvers.families import devices
from tests.solvers.slices import sliced

ONE_STAGE = {
    "gpipe": gpipe_passes,
    "one_f_one_b": one_f_one_b_passes,
    "h1": partial(zero_bubble_passes, ahead=1),
    "h2": partial(zero_bubble_passes, ahead=2),
}


def turns(order, devices, slices):
    return [order(devices, slices, device) for device in range(devices)]


# Passes of slices through stages, by when they start.
def test_a_pass_ranks_behind_those_that_it_waits_for():
    result = ranks(turns(one_f_one_b_passes, 2, 2), 2, 2)
    assert result["F"].tolist() == [[0, 2], [1, 5]]
    assert result["I"].tolist() == [[4, 3], [7, 6]]
    assert (result["W"] == result["I"]).all()


def test_halves_of_a_backward_pass_have_ranks_of_their_own():
    result = ranks([[Pass("F", 0, 0), Pass("I", 0, 0), Pass("W", 0, 0)]], 1, 1)
    assert [int(result[kind][0, 0]) for kind in ("F", "I", "W")] == [0, 1, 2]


def test_passes_that_wait_for_one_another_are_no_order():
    with pytest.raises(AssertionError, match="wait for one another"):
        ranks([[Pass("B", 0, 0), Pass("F", 0, 0)]], 1, 1)


@pytest.mark.parametrize(
    ("name", "slices"), [("gpipe", [8] * 4), ("one_f_one_b", [4, 3, 2, 1]), ("h1", [4] * 4)]
)
def test_slices_in_flight_are_those_of_the_paper(name, slices):
    assert in_flight(turns(ONE_STAGE[name], 4, 8), 4).tolist() == slices


def test_zb_h2_has_up_to_twice_as_many_slices_in_flight():
    assert in_flight(turns(ONE_STAGE["h2"], 4, 8), 4).tolist() == [7] * 4


def test_megatrons_last_chunks_are_not_full_for_as_long_as_the_first():
    order = partial(interleaved_passes, chunks=2)
    assert in_flight(turns(order, 4, 8), 8).tolist() == [8, 8, 7, 5, 4, 4, 3, 1]


@pytest.mark.parametrize("order", ONE_STAGE.values(), ids=ONE_STAGE)
@pytest.mark.parametrize("slices", [1, 2, 3, 7])
@pytest.mark.parametrize("devices", [1, 2, 5])
def test_every_slice_goes_through_every_stage_once(devices, slices, order):
    for device, passes in enumerate(turns(order, devices, slices)):
        kinds = {kind for kind, _, _ in passes}
        wanted = {Pass(kind, part, device) for kind in kinds for part in range(slices)}
        assert sorted(passes) == sorted(wanted)
        assert kinds in ({"F", "B"}, {"F", "I", "W"})


def ordered(*seconds: float) -> tuple[Problem, np.ndarray]:
    problem = Problem(sliced(*seconds), devices(1, 1))
    turns = [gpipe_passes(2, len(seconds), device) for device in range(2)]
    orders = OpOrders(problem, line_of(problem))
    return problem, orders.order(ranks(turns, len(seconds), 2), np.array([1]))


# Ops in the order of their passes.
def test_a_stage_runs_its_passes_and_a_sum_follows_the_last_gradient_that_it_reads():
    problem, order = ordered(1, 1)
    names = [problem.graph.ops[op].name for op in order]
    of_b = [name for name in names if problem.graph.ops[order[names.index(name)]].module == "b"]
    assert of_b == [
        "b",
        *("slice0/b", "slice1/b", "slice0/gb", "slice1/gb"),
        *("b/add1", "b/sgd"),
    ]


def test_the_order_is_topological():
    assert is_topological(*ordered(1, 2, 3))
