"""A choice of the order in which the gradients of slices are added up."""

from __future__ import annotations

from situate.data.problem import Problem
from situate.data.slices import Sums
from situate.solvers import solve

EVALUATIONS = 2000
"""Decisions that a search looks at to tell how good an order is."""


def better_sums(chain: Problem, tree: Problem) -> Sums:
    """The order for which a short search finds the better plan; of equal ones a chain, for which
    fewer sums are under way. The result depends on the problems alone.

    Args:
        chain, tree: a step whose gradients are added up in one order and in the other.
    """
    return "tree" if _best(tree) < _best(chain) else "chain"


def _best(problem: Problem) -> tuple[int, float]:
    """The bytes that are too many, and the value, of a plan."""
    result = solve(problem, evaluations=EVALUATIONS)
    return result.schedule.excess(problem), result.value
