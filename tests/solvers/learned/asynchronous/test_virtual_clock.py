"""A worker takes the seconds of the steps that it measures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from situate.errors import SituateError
from situate.evaluators.measurements import Measurements
from situate.solvers.learned.asynchronous.virtual_clock import VirtualClock, hours


def _measured(*seconds: float) -> Measurements:
    times = np.array(seconds)
    return Measurements(times, np.where(np.isfinite(times), 0, 1).astype(np.uint8))


# The clock counts setup and steps of workers that run side by side.


def test_workers_take_eleven_steps_side_by_side() -> None:
    assert VirtualClock(3).seconds(_measured(1, 2, 3)) == 33


def test_a_worker_takes_the_next_placement_when_it_is_free() -> None:
    assert VirtualClock(2).seconds(_measured(3, 1, 1)) == 33
    assert VirtualClock(1).seconds(_measured(3, 1, 1)) == 55


def test_every_placement_is_set_up_and_one_that_fails_takes_no_more() -> None:
    assert VirtualClock(1, setup=5).seconds(_measured(1, np.inf)) == 21


def test_slow_workers_take_longer() -> None:
    clock = VirtualClock(2, slowness=(1, 4))
    assert clock.seconds(_measured(1, 1)) == 44
    assert clock.seconds(_measured(1, 1), first=1) == 44


def test_batches_follow_one_another() -> None:
    batches = [_measured(1, 2), _measured(3, 1)]
    assert hours(VirtualClock(2), batches) == pytest.approx([22 / 3600, 55 / 3600])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": 0}, "workers: must be at least 1, got 0"),
        ({"workers": 1.5}, "workers: must be an integer, got 1.5"),
        ({"setup": -1.0}, "setup: must be finite and not negative, got -1.0 s"),
        ({"setup": np.nan}, "setup: must be finite and not negative, got nan s"),
        ({"slowness": (1.0, 0.0)}, "slowness: must be finite and positive, got 0.0"),
        ({"slowness": (np.inf,)}, "slowness: must be finite and positive, got inf"),
    ],
)
def test_a_clock_that_does_not_run_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SituateError, match=f"^clock: {message}$"):
        VirtualClock(**{"workers": 2} | settings)
