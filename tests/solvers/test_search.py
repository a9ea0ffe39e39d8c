"""The object through which methods offer decisions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from situate.data.problem import Problem
from situate.results.result import Progress
from situate.solvers.budget import Budget
from situate.solvers.search import Search
from tests.solvers.families import devices, graph, problem
from tests.solvers.searches import decision, late_tensor, search_of

# Offers may be repeated in a second order, or yield to simpler plans within a margin.


def test_one_device_is_preferred_by_any_decoder_within_the_margin() -> None:
    problem, order = late_tensor()
    search = search_of(problem)
    search.offer(np.array([0, 1, 1], np.int32), order, ["serial"])
    assert search.best is not None
    search.best = replace(search.best, value=1.0)
    search.prefer([np.array([0, 1, 1], np.int32)], order, 5.0)
    assert search.best.value == 3


def test_a_second_order_is_heard_with_every_placement() -> None:
    waiting = graph(3, [(1, 2)], size=0, seconds=[1.0, 1.0, 5.0])
    search = search_of(Problem(waiting, devices(1, 1)))
    search.second_order = np.array([1, 2, 0], np.int32)
    assert search.offer(*decision(0, 0, 1)).value == 7
    assert search.best is not None
    assert search.best.value == 6
    assert search.best.order is search.second_order


# Progress is reported after every offer.


def test_progress_tells_the_best_so_far() -> None:
    seen: list[Progress] = []
    search = Search(
        problem("layered"),
        1.0,
        budget=Budget(evaluation_limit=9),
        threads=1,
        on_progress=seen.append,
    )
    search.report()
    search.offer(*decision(*[0] * 20))
    assert (seen[0].value, seen[0].feasible) == (np.inf, False)
    assert search.best is not None
    assert (seen[1].value, seen[1].evaluations) == (search.best.value, 2)
    assert seen[1].lower_bound == 1.0
