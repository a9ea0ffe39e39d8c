"""The shares of the devices: together all of it, and nothing twice."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.runtime.device import Share  # noqa: E402
from situate.runtime.programs.placed import PlacedProgram  # noqa: E402
from situate.runtime.shares import share_of  # noqa: E402
from tests.runtime.steps import DEVICES, cut, program  # noqa: E402


def shares(name: str) -> tuple[PlacedProgram, list[Share]]:
    """The shares of two devices; the parameters are in groups 0 and 1 by turns."""
    found = program(name)
    placed = cut(found, 2)
    groups = {number: number % 2 for number in placed.updated}
    return placed, [
        share_of(placed, d, DEVICES[d], groups, seed=3, commits=False) for d in range(2)
    ]


def test_every_parameter_is_held_and_updated_by_one_device() -> None:
    placed, (one, other) = shares("towers")
    assert not one.here & other.here
    assert one.here | other.here == frozenset(placed.names.state.values())
    assert {**one.updates, **other.updates} == {k: k % 2 for k in placed.updated}
    assert all(share.updates.keys() <= share.here for share in (one, other))


def test_a_running_mean_is_overwritten_where_it_is_held() -> None:
    placed, found = shares("convolutional")
    assert placed.overwritten
    assert frozenset().union(*(share.copied for share in found)) == placed.overwritten
    assert all(share.copied <= share.here for share in found)


def test_only_the_timed_text_reads_the_clock() -> None:
    _, found = shares("towers")
    assert all("now()" in share.timed and "now()" not in share.text for share in found)


def test_all_draw_by_the_same_seed() -> None:
    assert [share.seed for share in shares("towers")[1]] == [3, 3]
