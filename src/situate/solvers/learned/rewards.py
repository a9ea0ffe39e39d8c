"""Rewards of placements, from their step times, and their normalisation."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Floats

SPREAD = 1e-6
"""Root mean square that rewards are divided by at least: smaller ones are of rounding."""

EQUAL = 1e-9
"""Rewards are equal where the largest is above the smallest by less."""


def log_rewards(times: Floats) -> Floats:
    """(k,) minus the logarithm of seconds (k,): differences do not depend on a step's length."""
    return np.asarray(-np.log(np.maximum(times, 1e-300)))


def normalised(rewards: Floats, baseline: float | None = None, least: float = SPREAD) -> Floats:
    """Rewards (k,) less their mean, over their root mean square then.

    Args:
        baseline: they are relative to this where all are equal, as when every sample fails: a
            policy that is sure of a failure would otherwise never leave it. None for zeros there.
        least: divisor at least.
    """
    # (k,) either way; the root mean square of differences from the mean is their deviation.
    relative = rewards - rewards.mean()
    if baseline is not None and np.ptp(rewards) < EQUAL:
        relative = rewards - baseline
    return np.asarray(relative / max(float(np.sqrt(np.square(relative).mean())), least))
