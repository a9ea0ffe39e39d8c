"""The result of a search."""

from __future__ import annotations

import numpy as np

from situate.errors import SituateError
from situate.results.result import Result
from situate.solvers.search import Search


def result_of(search: Search, method: str) -> Result:
    """The best decision of a search, with its history.

    Raises:
        SituateError: the search found no plan.
    """
    best = search.best
    if best is None:
        raise SituateError(f"method {method!r} found no plan")
    # One batch an array; a method that does not learn has none.
    samples = np.concatenate([m.seconds for m in search.measurements] or [np.empty(0)])
    return Result(
        problem=search.problem,
        method=method,
        decoder=best.decoder,
        placement=best.placement,
        order=best.order,
        schedule=best.schedule,
        value=best.value,
        lower_bound=search.lower_bound if best.feasible else None,
        bounded_by=search.bounded_by if best.feasible else None,
        feasible=best.feasible,
        evaluations=search.evaluations,
        seconds=search.seconds,
        seed=search.seed,
        history=tuple(search.history),
        samples=samples,
        transfers=best.transfers,
        asynchrony=search.asynchrony(),
        knows=search.knows,
        interrupted=search.interrupted,
        overtime=search.overtime,
        measured=search.measured_best if search.learning.evaluator is not None else None,
    )
