"""Ways of cutting a batch."""

from __future__ import annotations

import msgspec
import pytest

from situate.data.cluster import Cluster, Link
from situate.data.problem import Problem
from situate.slicing.shares import by_device, falling, growing
from situate.solvers import solve
from tests.solvers.families import devices
from tests.solvers.slices import sliced


# Equal slices.
def test_equal_slices_are_one_a_device_then_twice_as_many_up_to_the_batch():
    assert list(growing(8, 2)) == [(4, 4), (2,) * 4, (1,) * 8]
    assert list(growing(7, 3)) == [(3, 2, 2), (2, 1, 1, 1, 1, 1)]
    assert list(growing(4, 1)) == [(2, 2), (1,) * 4]
    assert len(list(growing(4096, 2))[-1]) == 16


def test_fewer_slices_than_devices_are_half_as_many_down_to_two():
    assert list(falling(8, 8)) == [(2,) * 4, (4, 4)]
    assert list(falling(8, 2)) == []
    assert list(falling(1, 8)) == []


@pytest.mark.parametrize("batch", [1, 2, 5, 12, 30])
@pytest.mark.parametrize("kinds", [(1, 2), (1, 1, 2), (1, 2, 2, 2)])
def test_every_way_cuts_the_whole_batch_into_slices_of_a_sample_or_more(batch, kinds):
    for shares in ways(batch, kinds):
        assert sum(shares) == batch
        assert len(shares) > 1
        assert min(shares) > 0


def ways(batch: int, kinds: tuple[int, ...]) -> list[tuple[int, ...]]:
    count = len(kinds)
    return [*growing(batch, count), *falling(batch, count), *sized(batch, devices(*kinds))]


def sized(batch: int, cluster: Cluster) -> list[tuple[int, ...]]:
    problem = Problem(sliced(float(batch)), cluster)
    return list(by_device(problem, batch, solve(problem, "single").schedule))


# Slices by speed and memory.
def test_a_device_that_is_twice_as_fast_gets_twice_the_samples():
    twice = devices(1, 2)
    assert sized(12, twice) == [(8, 4), (4, 4, 2, 2), (2, 2, 2, 2, 1, 1, 1, 1)]
    assert sized(5, twice) == [(4, 1)]


def test_equal_devices_have_no_sizes_of_their_own():
    assert sized(12, devices(1, 1)) == []


def test_a_device_gets_no_more_than_it_has_room_for():
    fast, slow = devices(1, 2).devices
    small = msgspec.structs.replace(fast, memory=6)
    cluster = Cluster("small", (small, slow), (Link("*", "*", 1.0),))
    assert sized(12, cluster)[0] == (10, 2)
