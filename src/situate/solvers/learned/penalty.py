"""The penalty of a failed placement, in seconds."""

from __future__ import annotations

from situate.data.problem import Problem

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
