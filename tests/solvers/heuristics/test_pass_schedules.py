"""Schedules of passes: the orders and durations of the papers."""

from __future__ import annotations

import numpy as np
import pytest

from situate.bench.families.pipelines import pipeline
from situate.solvers import solve
from situate.solvers.heuristics.pass_schedules import (
    SCHEDULES,
    gpipe_passes,
    interleaved_passes,
    one_f_one_b_passes,
    zero_bubble_passes,
)
from situate.solvers.search import Search
from situate.solvers.slice_pipelines.offering import offer_slice_pipelines
from situate.solvers.slice_pipelines.passes import ranks
from tests.solvers.slice_pipelines.uniform import drawn, uniform


# All slices forward, then all of them back.
def test_every_device_runs_all_forward_passes_before_any_backward_pass():
    assert [drawn(gpipe_passes(3, 2, device)) for device in range(3)] == ["F0 F1 B0 B1"] * 3


@pytest.mark.parametrize(("stages", "slices"), [(2, 4), (4, 8), (4, 16), (8, 16), (8, 32)])
def test_it_takes_what_the_paper_says_and_holds_all_activations(stages, slices):
    result = solve(uniform(stages, slices, memory=slices), "gpipe")
    assert result.feasible
    assert result.value == 3 * (slices + stages - 1)
    assert result.schedule.peak.max() == slices


# Forward and backward passes by turns.
def test_the_passes_are_those_of_the_paper():
    """Two devices and four slices, counted from 0."""
    assert drawn(one_f_one_b_passes(2, 4, 0)) == "F0 F1 B0 F2 B1 F3 B2 B3"
    assert drawn(one_f_one_b_passes(2, 4, 1)) == "F0 B0 F1 B1 F2 B2 F3 B3"


def test_few_slices_end_their_way_in_before_any_comes_back():
    assert drawn(one_f_one_b_passes(4, 2, 0)) == "F0 F1 B0 B1"


@pytest.mark.parametrize(("stages", "slices"), [(2, 4), (4, 8), (4, 16), (8, 16), (8, 32)])
def test_it_takes_what_the_paper_says_and_holds_a_slice_for_each_stage_behind(stages, slices):
    result = solve(uniform(stages, slices, memory=stages), "one_f_one_b")
    assert result.feasible
    assert result.value == 3 * (slices + stages - 1)
    assert sorted(result.schedule.peak) == list(range(1, stages + 1))


# Several chunks a device.
def test_the_passes_are_those_of_megatron():
    """The last of two devices, with two chunks and four slices: two go through a chunk together."""
    assert (
        drawn(interleaved_passes(2, 4, 1, 2)) == "F0 F1 F0 B0 F1 B1 F2 B0 F3 B1 F2 B2 F3 B3 B2 B3"
    )
    stages = [stage for _, _, stage in interleaved_passes(2, 4, 1, 2)]
    assert stages == [1, 1, 3, 3, 3, 3, 1, 1, 1, 1, 3, 3, 3, 3, 1, 1]


@pytest.mark.parametrize(
    "order", SCHEDULES["interleaved"], ids=lambda order: f"{order.chunks} chunks"
)
@pytest.mark.parametrize(("devices", "slices"), [(2, 4), (4, 8), (4, 16), (8, 16)])
def test_the_bubble_is_that_of_one_chunk_over_the_chunks(devices, slices, order):
    """In units of a chunk's forward pass."""
    search = Search(uniform(devices, slices, chunks=order.chunks))
    offer_slice_pipelines(search, [order])
    assert search.incumbent.value == 3 * slices * order.chunks + 3 * (devices - 1)


@pytest.mark.parametrize("devices", range(1, 6))
@pytest.mark.parametrize("slices", range(1, 12))
def test_no_pass_waits_for_one_that_waits_for_it(devices, slices):
    for chunks in (2, 3):
        turns = [interleaved_passes(devices, slices, device, chunks) for device in range(devices)]
        assert (
            ranks(turns, slices, devices * chunks)["W"].max() == 2 * slices * devices * chunks - 1
        )


SIZES = [(2, 4), (4, 8), (4, 16), (8, 16), (8, 32)]


# Backward passes in two halves.
def test_zero_bubble_the_passes_are_those_of_the_paper():
    """The first and the last device of ZB-H1 and ZB-H2 with three devices and five slices."""
    first, last = (drawn(zero_bubble_passes(3, 5, device, ahead=1)) for device in (0, 2))
    assert first == "F0 F1 F2 I0 W0 F3 I1 W1 F4 I2 W2 I3 W3 I4 W4"
    assert last == "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 F4 I4 W2 W3 W4"
    first, last = (drawn(zero_bubble_passes(3, 5, device, ahead=2)) for device in (0, 2))
    assert first == "F0 F1 F2 F3 F4 I0 W0 I1 W1 I2 W2 I3 W3 I4 W4"
    assert last == "F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 W1 W2 W3 W4"


@pytest.mark.parametrize(("stages", "slices"), SIZES)
def test_h1_takes_what_the_paper_says_in_the_memory_of_1f1b(stages, slices):
    result = solve(uniform(stages, slices, memory=stages, split=True), "zero_bubble")
    assert result.feasible
    assert result.value == 3 * slices + stages - 1


@pytest.mark.parametrize(("stages", "slices"), SIZES)
def test_h2_does_not_wait_between_a_devices_first_op_and_its_last(stages, slices):
    result = solve(uniform(stages, slices, memory=2 * stages - 1, split=True), "zero_bubble_h2")
    assert result.feasible
    assert result.value == 3 * slices + stages - 1
    for device in range(stages):
        on = result.placement == device
        assert np.ptp([*result.schedule.start[on], *result.schedule.end[on]]) == 3 * slices


def test_a_backward_pass_that_is_one_op_is_not_cut():
    assert solve(uniform(4, 8), "zero_bubble").value == solve(uniform(4, 8), "one_f_one_b").value


@pytest.mark.parametrize("method", ["gpipe", "one_f_one_b", "zero_bubble", "zero_bubble_h2"])
def test_stages_that_are_pinned_are_where_they_are_pinned(method):
    problem = pipeline(4, 8, split=method.startswith("zero"))
    known = 27 if method.startswith("zero") else 33
    assert solve(problem, method).value == known
