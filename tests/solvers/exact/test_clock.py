"""Times and bytes become whole numbers that are never too large."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.solvers.exact.clock import LARGEST_SUM, Bytes, Ticking, Turns
from tests.solvers.families import apart, chain, devices


def test_multiples_of_one_number_are_exact():
    clock = Ticking.until(6.0, np.array([1.5, 3.0, 0.75, 0.0]))
    assert (clock.unit, clock.slack, clock.horizon) == (0.75, 0.0, 8)
    assert clock.ticks(np.array([1.5, 3.0, 0.75, 0.0])).tolist() == [2, 4, 1, 0]
    assert clock.at(np.array([0.75, 6.0])).tolist() == [1, 8]
    assert clock.delay(1.5) == 2


def test_others_lose_what_rounding_may_have_added_and_less_than_a_tick():
    seconds = np.array([0.1, 0.2, 0.3, 0.7])
    clock = Ticking.until(1.3, seconds)
    exact = seconds / clock.unit
    assert clock.slack > 0
    assert (clock.ticks(seconds) <= exact).all()
    assert (clock.ticks(seconds) > exact - 1.001).all()


@pytest.mark.parametrize("seed", range(20))
def test_rounded_sums_are_no_longer_than_the_sums_of_floats(seed):
    seconds = np.random.default_rng(seed).exponential(1.0, 50)
    ends = np.cumsum(seconds)
    clock = Ticking.until(float(ends[-1]), seconds)
    assert (np.cumsum(clock.ticks(seconds)) <= clock.at(ends)).all()


def test_what_is_too_long_is_one_tick_longer_than_all_there_is():
    clock = Ticking.until(3.0, np.array([1.0, 1e300, np.inf]))
    assert clock.horizon == 3
    assert clock.ticks(np.array([1.0, 1e300])).tolist() == [1, 4]


def test_times_fifteen_orders_apart_round_to_nothing():
    clock = Ticking.until(1e6, np.array([1e-9, 1e6]))
    short, long = clock.ticks(np.array([1e-9, 1e6])).tolist()
    assert short == 0
    assert long in (clock.horizon - 1, clock.horizon)


@pytest.mark.parametrize("end", [5e-324, 1e-310, 1e-300, 1e299])
def test_any_time_has_a_clock(end):
    clock = Ticking.until(end, np.array([end, end / 3]))
    assert 0 < clock.horizon <= LARGEST_SUM
    assert clock.ticks(np.array([end]))[0] <= clock.horizon


def test_no_time_at_all_has_a_clock():
    assert Ticking.until(0.0, np.array([0.0, 1.0])).horizon == 0


def test_all_that_takes_time_takes_a_turn():
    clock = Turns(1e-9, 3)
    assert clock.ticks(np.array([0.0, 1e-9, 1e-8, 5.0])).tolist() == [0, 0, 1, 1]
    assert clock.at(np.array([0.5, 0.0, 7.0, 0.5])).tolist() == [1, 0, 2, 1]
    assert clock.delay(1.0) == 0


def test_bytes_are_multiples_of_their_divisor():
    sizes = Bytes.of(Problem(chain(3, size=12, persistent=8, workspace=4), devices(1, 1)))
    assert sizes.unit == 4
    # 24 bytes made, on either device once more, 24 held and 12 to work with.
    assert sizes.total == (24 * 3 + 24 + 12) // 4
    assert sizes.whole(11) == 2


def test_very_many_bytes_are_rounded_down():
    sizes = Bytes.of(Problem(apart(2, persistent=2**45 + 1), devices(1, 1)))
    assert sizes.total <= LARGEST_SUM
    assert sizes.whole(2**45 + 1) * sizes.unit <= 2**45 + 1
