"""List schedules of passes at a steady pace."""

from __future__ import annotations

import math

import pytest

from situate.solvers.slice_pipelines.pacing import Pace, Stages, paced_passes

AT_ONCE = Pace(0.0, 1)


def stages(device: list[int], room: float = math.inf, held: float = 1.0) -> Stages:
    """Stages whose passes take a second each and hold a byte."""
    count = len(device)
    ones = [1.0] * count
    return Stages(
        device,
        {"F": ones, "I": ones, "W": ones},
        ones,
        [held] * count,
        [room] * (max(device) + 1),
    )


def order(of: Stages, slices: int, pace: Pace = AT_ONCE) -> list[str]:
    """Passes as words such as `F0@1`: kind, slice and stage."""
    return [f"{p.kind}{p.slice}@{p.stage}" for p in paced_passes(of, slices, pace)[1]]


# Seconds and order of a schedule.
def test_one_slice_goes_through_all_stages_and_back():
    seconds, passes = paced_passes(stages([0, 1]), 1, AT_ONCE)
    assert seconds == pytest.approx(5, rel=0.01)
    assert [f"{p.kind}@{p.stage}" for p in passes] == ["F@0", "F@1", "I@1", "W@1", "I@0", "W@0"]


def test_a_device_takes_gradients_of_inputs_first_and_those_of_weights_last():
    assert order(stages([0]), 2) == ["F0@0", "I0@0", "F1@0", "I1@0", "W0@0", "W1@0"]


def test_every_pass_runs_once_on_any_route():
    for device in ([0, 1], [0, 1, 0, 1], [0, 1, 1, 0]):
        passes = order(stages(device), 4)
        assert len(passes) == len(set(passes)) == 3 * 4 * len(device)


# Memory and the pace.
def test_slices_in_flight_fit_the_room():
    passes = order(stages([0, 1], room=2), 5)
    held = 0
    for one_pass in passes:
        if one_pass.endswith("@0"):
            held += {"F": 1, "I": 0, "W": -1}[one_pass[0]]
            assert held <= 2


def test_a_slice_on_its_way_has_room_in_later_stages_of_a_device():
    seconds, _ = paced_passes(stages([0, 1, 1, 0], room=2), 6, AT_ONCE)
    assert math.isfinite(seconds)


def test_without_room_for_one_slice_there_is_no_schedule():
    assert paced_passes(stages([0, 0], room=1), 2, AT_ONCE) == (math.inf, [])


def test_slices_behind_a_burst_are_admitted_one_by_one():
    seconds, _ = paced_passes(stages([0]), 3, Pace(10.0, 2))
    assert seconds == pytest.approx(10 + 3)
