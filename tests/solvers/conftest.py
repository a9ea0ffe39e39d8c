"""Bounds of problems, which the searches of a test share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from situate import solvers
from situate.bounds.lower_bound import Bound, bound_in_time
from situate.data.problem import Problem


@pytest.fixture(scope="package", autouse=True)
def _bounds_are_shared() -> Iterator[None]:
    """Without a time limit, a problem has one bound for all methods; it takes as long as most of
    their searches."""
    bounds: WeakKeyDictionary[Problem, Bound] = WeakKeyDictionary()

    def shared(problem: Problem, begin: float, time_limit: float | None, core: Any) -> Bound:
        if time_limit is not None:
            return bound_in_time(problem, begin, time_limit, core)
        if problem not in bounds:
            bounds[problem] = bound_in_time(problem, begin, None, core)
        return bounds[problem]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solvers, "bound_in_time", shared)
        yield
