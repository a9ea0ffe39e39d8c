"""Passes of slices through stages, by when they start."""

from __future__ import annotations

from functools import partial

import pytest

from situate.solvers.heuristics import gpipe, interleaved, one_f_one_b, zero_bubble
from situate.solvers.slice_pipelines.passes import Pass, in_flight, ranks

ONE_STAGE = {
    "gpipe": gpipe.passes,
    "one_f_one_b": one_f_one_b.passes,
    "h1": partial(zero_bubble.passes, ahead=1),
    "h2": partial(zero_bubble.passes, ahead=2),
}


def turns(order, devices, slices):
    return [order(devices, slices, device) for device in range(devices)]


def test_a_pass_ranks_behind_those_that_it_waits_for():
    found = ranks(turns(one_f_one_b.passes, 2, 2), 2, 2)
    assert found["F"].tolist() == [[0, 2], [1, 5]]
    assert found["I"].tolist() == [[4, 3], [7, 6]]
    assert (found["W"] == found["I"]).all()


def test_halves_of_a_backward_pass_have_ranks_of_their_own():
    found = ranks([[Pass("F", 0, 0), Pass("I", 0, 0), Pass("W", 0, 0)]], 1, 1)
    assert [int(found[kind][0, 0]) for kind in ("F", "I", "W")] == [0, 1, 2]


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
    order = partial(interleaved.passes, chunks=2)
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
