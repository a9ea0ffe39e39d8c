"""Seconds of exchanges within a team."""

from __future__ import annotations

import pytest

from situate.data.letter_graph import SUM, WHOLE
from situate.solvers.cut_choice.rates import Rates

MEGA = 10**6


def rates(latency: float = 1e-3, shares_channel: bool = False, largest: float = 1 / 4) -> Rates:
    """Four devices on links of 1 GB/s."""
    return Rates(latency, 1e9, shares_channel, launch=0.0, memory=1e18, parts=4, largest=largest)


# Exchanges take the transfers and the ops by which cuts write them.
@pytest.mark.parametrize(
    ("source", "target", "seconds"),
    [
        ((WHOLE, 1), (WHOLE, 4), 2e-3),
        ((0, 4), (WHOLE, 4), 1.25e-3),
        ((SUM, 4), (0, 4), 1.25e-3),
        ((SUM, 4), (WHOLE, 4), 2.5e-3),
        ((0, 4), (1, 4), 1.0625e-3),
    ],
)
def test_exchanges_are_those_of_collectives(source, target, seconds) -> None:
    assert rates().exchange(source, target, MEGA) == pytest.approx(seconds)


def test_a_channel_that_all_receivers_share_is_busy_for_each() -> None:
    own = rates(latency=0.0, shares_channel=True)
    assert own.exchange((0, 4), (WHOLE, 4), MEGA) == pytest.approx(0.75e-3)


def test_the_largest_part_takes_longest() -> None:
    unequal = rates(latency=0.0, largest=1 / 2)
    assert unequal.exchange((0, 4), (WHOLE, 4), MEGA) == pytest.approx(0.5e-3)
    assert unequal.exchange((SUM, 4), (0, 4), MEGA) == pytest.approx(0.5e-3)
    assert unequal.exchange((0, 2), (WHOLE, 4), MEGA) == pytest.approx(0.5e-3)
