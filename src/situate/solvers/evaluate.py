"""The value, the bound and the plan of a placement from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from situate.bounds.lower_bound import tightest_bound
from situate.data.placements import Restrictions, check_order, indices_of, integers
from situate.data.problem import Problem
from situate.results.result import Result
from situate.solvers.search import Search
from situate.validation import check


def evaluate(
    problem: Problem,
    placement: NDArray[np.int32] | Mapping[str, str],
    order: NDArray[np.int32] | None = None,
    *,
    method: str = "own",
    seed: int = 0,
) -> Result:
    """The result of a placement from elsewhere, decoded as a solver's placement would be.

    Args:
        problem: of n ops and d devices.
        placement: (n,) device index of each op, or a mapping from all op names to device names.
        order: (n,) op indices, the most urgent first; None for the graph's order.
        method: name of the method that made the placement.
        seed: seed of that method.

    Raises:
        SituateError: a wrong type or shape, an unknown op or device, an op on a device that may not
            run it, a group on several devices, an order that is no permutation of the ops.
    """
    check(problem, Problem, "problem")
    check(method, str, "method")
    check(seed, int, "seed")
    devices_of_ops = indices_of(problem, placement) if isinstance(placement, Mapping) else placement
    rows = integers(devices_of_ops, (problem.n,), "placement")[None]
    devices = Restrictions(problem).check(rows, lambda _: "placement: ")[0]
    urgent = check_order(problem, problem.graph.order if order is None else order)
    bound = tightest_bound(problem)
    search = Search(problem, bound.value, seed=seed, bounded_by=bound.name)
    search.offer(devices, urgent)
    return search.result(method)
