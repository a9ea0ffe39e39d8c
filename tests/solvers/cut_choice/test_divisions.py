"""Divisions of ops among devices."""

from __future__ import annotations

import pytest

from situate import Cluster, Graph, Problem
from situate.data.cluster import Device, Link
from situate.data.cuts import Cut
from situate.data.graph import Op
from situate.solvers.cut_choice.divisions import Division, divisions


def problem(
    speeds: tuple[float, ...], memory: tuple[int | None, ...] = (), persistent: int = 0
) -> Problem:
    """An op on GPUs of these speeds."""
    rooms = memory or (None,) * len(speeds)
    gpus = tuple(
        Device(f"gpu{k}", flops={"float32": speed * 1e12}, memory=room)
        for k, (speed, room) in enumerate(zip(speeds, rooms, strict=True))
    )
    op = Op("op", flops=10**12, dtype="float32", persistent=persistent)
    return Problem(Graph("step", (op,)), Cluster("gpus", gpus, (Link("*", "*", bandwidth=1e9),)))


def weights(*arguments) -> list[tuple[float, ...]]:
    return [own.weights for own in divisions(problem(*arguments))]


def test_equal_devices_have_equal_parts_alone() -> None:
    assert weights((1, 1, 1, 1)) == [(0.5, 0.5), (0.25,) * 4]


def test_unequal_devices_have_parts_by_speed_too() -> None:
    assert weights((3, 1)) == [(0.5, 0.5), (0.75, 0.25)]


def test_teams_of_equal_devices_have_no_unequal_parts() -> None:
    assert weights((2, 2, 1, 1)) == [(0.5, 0.5), (0.25,) * 4, (0.3333, 0.3333, 0.1667, 0.1667)]


# Parameters of 100 bytes; a device may be filled to nine tenths.
def test_a_device_holds_no_more_than_fits() -> None:
    assert weights((3, 1), (50, 100), 40) == [(0.5, 0.5), (0.75, 0.25)]
    assert weights((3, 1), (50, 100), 100) == [(0.5, 0.5), (0.75, 0.25), (0.45, 0.55)]
    assert weights((3, 1, 1), (50, 100, 100), 100)[-1] == (0.45, 0.275, 0.275)


def test_memory_does_not_matter_where_nothing_would_fit() -> None:
    assert weights((3, 1), (100, 10), 100) == [(0.5, 0.5), (0.75, 0.25)]


# Shares have the smallest sum that comes within 2 % of the best longest part.
@pytest.mark.parametrize(
    ("units", "shares"),
    [
        ([32], (3, 1)),
        ([4096, 11008], (11, 4)),
        ([50257], (11, 4)),
        ([12], (3, 1)),
        ([2], (1, 1)),
    ],
)
def test_shares_are_small_numbers_that_the_units_allow(units, shares) -> None:
    cut = Division((0.733, 0.267)).cut("features", units)
    assert cut == Cut("features", shares)
    assert all(cut.bounds(size) for size in units)


def test_units_that_no_shares_divide_have_no_unequal_cut() -> None:
    assert Division((0.75, 0.25)).cut("heads", [1]) is None
    assert Division((0.5, 0.3, 0.2)).cut("heads", [32, 5]) is None


def test_equal_parts_need_one_class_that_has_so_many() -> None:
    assert Division.equal(4).cut("heads", [3, 8]) == Cut("heads", (1, 1, 1, 1))
    assert Division.equal(4).cut("heads", [3, 6]) is None
