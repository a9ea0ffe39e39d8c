"""The value, the bound and the plan of a placement that was made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from situate.bounds.lower_bound import tightest_bound
from situate.data.placements import Restrictions, check_order, indices_of, integers
from situate.data.problem import Problem
from situate.results.result import Result
from situate.solvers.outcome import result_of
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
    """The result of a placement that was made elsewhere, decoded as those of the solvers are.

    Args:
        problem: of n ops and d devices.
        placement: (n,) device index of each op, or a mapping from the names of all ops to those of
            devices.
        order: (n,) op indices, the most urgent first; None for the graph's order.
        method: the name of what made them.
        seed: what its randomness came from.

    Raises:
        SituateError: something of another type or shape, an unknown op or device, an op where it
            may not run, a group on several devices, an order in which not every op is once.
    """
    check(problem, Problem, "problem")
    check(method, str, "method")
    check(seed, int, "seed")
    given = indices_of(problem, placement) if isinstance(placement, Mapping) else placement
    rows = integers(given, (problem.n,), "placement")[None]
    devices = Restrictions(problem).check(rows, lambda _: "placement: ")[0]
    urgent = check_order(problem, problem.graph.order if order is None else order)
    bound = tightest_bound(problem)
    search = Search(problem, bound.value, seed=seed, bounded_by=bound.name)
    search.offer(devices, urgent)
    return result_of(search, method)
