"""Grouping: the sets of ops that a learner places as one. One file a rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.errors import SituateError, nearest
from situate.grouping import colocation
from situate.grouping.groups import Groups, Weights, make_groups
from situate.validation import check

GROUPINGS = {
    "none": "none",
    "prefix": "prefix",
    "colocation": "colocation",
    "bytes": "tensor_bytes",
    "structure": "structure",
    "heavy-edge": "heavy_edge",
    "metis": "metis",
}
"""Names of the rules, and the modules of this package that hold them."""

COUNT = 64
"""Default number of groups of a rule with a number."""

METHODS_WITH_COUNT = ("bytes", "structure", "heavy-edge", "metis")
"""Rules that take a number of groups."""

WEIGHTS: dict[str, Weights] = {
    "bytes": "bytes",
    "structure": "work",
    "heavy-edge": "seconds",
    "metis": "seconds",
}
"""Weights of ops by rule. The other rules weigh no ops, except `colocation` in some graphs."""

TOLD_COSTS = tuple(rule for rule, weights in WEIGHTS.items() if weights == "seconds")
"""Rules that use the costs of ops. `structure` uses FLOPs and memory traffic. The others use names,
types, shapes, bytes, edges and the allowed devices."""

__all__ = [
    "COUNT",
    "GROUPINGS",
    "METHODS_WITH_COUNT",
    "TOLD_COSTS",
    "WEIGHTS",
    "Groups",
    "group",
    "make_groups",
]


def group(problem: Problem, rule: str = "prefix", count: int | None = None) -> Groups:
    """Group the ops of a problem.

    Args:
        problem: of n ops.
        rule: one of `GROUPINGS`; see docs/grouping.md.
        count: number of groups for the rules in `METHODS_WITH_COUNT`; None for `COUNT`. There are
            fewer groups if there are fewer units, and more if units share no device.

    Raises:
        SituateError: an unknown rule; a count below one or not whole, or for a rule that takes
            none.
        MissingExtra: `metis` without pymetis.
    """
    check(problem, Problem, "problem")
    check(rule, str, "grouping")
    check(count, int | None, "groups")
    if rule not in GROUPINGS:
        raise SituateError(f"unknown grouping {rule!r}{nearest(rule, GROUPINGS)}")
    if count is not None and count < 1:
        raise SituateError(f"groups: must be at least 1, got {count}")
    if count is not None and rule not in METHODS_WITH_COUNT:
        takes = ", ".join(repr(name) for name in METHODS_WITH_COUNT)
        raise SituateError(f"grouping {rule!r} takes no number of groups; these do: {takes}")
    module = import_module(f"situate.grouping.{GROUPINGS[rule]}")
    labels: Callable[[Problem, int], NDArray[np.int64]] = module.labels
    groups = make_groups(problem, labels(problem, min(count or COUNT, problem.units)))
    return replace(groups, weights=_weights(problem, rule))


def _weights(problem: Problem, rule: str) -> Weights | None:
    if rule == "colocation":
        return "work" if colocation.reads_work(problem) else None
    return WEIGHTS.get(rule)
