"""What a placement that fails counts as."""

from __future__ import annotations

from situate.data.problem import Problem

FAILURE = 100.0
"""Seconds that a failing placement counts as (Post, section 4; Hierarchical Planner)."""

MOST = 1e30
"""Seconds that a failure counts as at most: learners compute in single precision."""


def failure_seconds(problem: Problem) -> float:
    """`FAILURE`, or where steps are so long that this could be good, ten times the seconds that
    all ops take one after the other, each on its fastest device, but at most `MOST`."""
    return min(max(FAILURE, 10 * float(problem.seconds.min(axis=1).sum())), MOST)
