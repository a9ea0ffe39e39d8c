"""Rewards of placements, from their step times, and their normalisation."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Floats

LEAST_SPREAD = 1e-6
"""Least divisor of rewards: a smaller root mean square comes from rounding."""

EQUAL_RANGE = 1e-9
"""Rewards whose range is smaller than this are equal."""


def log_rewards(times: Floats) -> Floats:
    """(k,) minus the logarithm of seconds (k,): differences are independent of the time scale."""
    return np.asarray(-np.log(np.maximum(times, 1e-300)))


def normalised(
    rewards: Floats, baseline: float | None = None, least: float = LEAST_SPREAD
) -> Floats:
    """Rewards (k,) less their mean, divided by the root mean square of the difference.

    Args:
        baseline: replaces the mean if all rewards are equal, as when every sample fails. Otherwise
            a policy that always draws one failing placement would never leave it. None for zeros.
        least: least divisor.
    """
    # (k,) either way; the root mean square of differences from the mean is their deviation.
    relative = rewards - rewards.mean()
    if baseline is not None and np.ptp(rewards) < EQUAL_RANGE:
        relative = rewards - baseline
    return np.asarray(relative / max(float(np.sqrt(np.square(relative).mean())), least))
