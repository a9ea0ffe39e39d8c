"""The seconds that a placement which fails counts as."""

from __future__ import annotations

from situate.data.problem import Problem

FAILURE_SECONDS = 100.0
"""Seconds that a failing placement counts as (Post, section 4; Hierarchical Planner)."""

MOST_SECONDS = 1e30
"""Seconds that a failure counts as at most: learners compute in single precision."""


def failure_seconds(problem: Problem) -> float:
    """`FAILURE_SECONDS`, or where steps are so long that this could be good, ten times the seconds
    that all ops take one after the other, each on its fastest device; at most `MOST_SECONDS`."""
    one_by_one = float(problem.seconds.min(axis=1).sum())
    return min(max(FAILURE_SECONDS, 10 * one_by_one), MOST_SECONDS)
