"""A level: plans carried over to a coarse problem and back."""

from __future__ import annotations

import numpy as np

from situate.data.placements import check_order
from situate.simulation.decoding import is_topological
from situate.solvers.auto.coarse.level import Level
from situate.solvers.budget import Budget
from situate.solvers.search import Search
from tests.solvers.auto.coarse.unrolled import unrolled


def test_a_fine_plan_keeps_its_devices_on_a_level_made_for_it() -> None:
    problem = unrolled()
    generator = np.random.default_rng(0)
    placement = generator.integers(problem.d, size=problem.units)[problem.unit].astype(np.int32)
    search = Search(problem, budget=Budget(evaluation_limit=100), threads=1)
    plan = search.offer(placement, np.array(problem.graph.order, np.int32))
    level = Level.of_neighbours(problem, 40, placement)
    coarse = level.problem()
    above = Search(coarse, budget=Budget(evaluation_limit=100), threads=1)
    carried = above.offer(*level.coarse_plan(plan))
    back, order = level.fine_plan(coarse, carried)
    assert np.array_equal(back, placement)
    assert is_topological(problem, check_order(problem, order))


def test_a_coarse_plan_becomes_a_feasible_fine_plan() -> None:
    problem = unrolled()
    level = Level.of_neighbours(problem, 30)
    coarse = level.problem()
    assert coarse.n == level.runs < problem.n
    above = Search(coarse, budget=Budget(evaluation_limit=100), threads=1)
    placement = np.arange(coarse.units)[coarse.unit].astype(np.int32) % 2
    candidate = above.offer(placement, np.array(coarse.graph.order, np.int32))
    search = Search(problem, budget=Budget(evaluation_limit=100), threads=1)
    plan = search.offer(*level.fine_plan(coarse, candidate))
    assert plan.feasible
    plan.schedule.verify(problem)
