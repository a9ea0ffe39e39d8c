"""From steps to rewards: how the papers measure, the penalty of failures, and normalisation."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Floats
from situate.data.problem import Problem
from situate.evaluators.steps import Steps

LEAST_SPREAD = 1e-6
"""Least divisor of rewards: a smaller root mean square comes from rounding."""

EQUAL_RANGE = 1e-9
"""Rewards whose range is smaller than this are equal."""


POST = Steps(dropped=1, timed=10, window=10)
"""11 steps, the first dropped, the mean of the others (Post, section 4). Spotlight's Algorithm 1
trains for ten steps, without details."""

COLOCRL = Steps(dropped=5, timed=10, window=5)
"""Ten repetitions after five discarded ones, the smallest moving average (ColocRL); the window is
ours."""

PAPER_STEPS = {
    "policy_gradient": POST,
    "ppo": POST,
    "cross_entropy": POST,
    "post": POST,
    "spotlight": POST,
    "colocrl": COLOCRL,
}
"""By method, in `paper` settings. The Hierarchical Planner's sources give none."""

FAILURE_SECONDS = 100.0
"""Seconds of a failed placement (Post, section 4; Hierarchical Planner)."""

MOST_SECONDS = 1e30
"""Largest penalty in seconds: learners compute in single precision."""


def failure_seconds(problem: Problem) -> float:
    """Penalty of a failed placement: at least `FAILURE_SECONDS`, at most `MOST_SECONDS`.

    For long steps it is ten times the serial seconds of all ops on their fastest devices.
    """
    one_by_one = float(problem.seconds.min(axis=1).sum())
    return min(max(FAILURE_SECONDS, 10 * one_by_one), MOST_SECONDS)


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
