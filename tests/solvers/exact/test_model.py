"""Whole models, and the incumbent as the first guess."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from situate.data.problem import OBJECTIVES, Problem
from situate.simulation.decoding import decoders_for
from situate.solvers.exact.clock import Ticking
from situate.solvers.exact.constraints import Timing
from situate.solvers.exact.model import build, hint_placement, hint_times
from situate.solvers.exact.objective import Goal
from situate.solvers.exact.solve import cp_model
from situate.solvers.exact.variables import Placing
from situate.solvers.incumbent import Candidate
from situate.solvers.search import Search
from tests.oracle.problems import random_decision, random_problem, small_problem
from tests.solvers.families import chain, devices
from tests.solvers.programs import needs_ortools

pytestmark = needs_ortools


# The best plan is a whole guess.
def test_devices_transfers_and_starts_are_those_of_the_plan():
    problem = Problem(chain(3, size=4), devices(1, 2))
    result = Search(problem).offer(np.array([0, 1, 0], np.int32), np.arange(3, dtype=np.int32))
    cp = cp_model()
    placing = Placing(problem, cp.CpModel())
    clock = Ticking.until(result.value, np.array([1.0]))
    timing = Timing(placing, clock)
    hint_placement(placing, result)
    hint_times(placing, timing, clock, result)
    solver = cp.CpSolver()
    solver.parameters.fix_variables_to_their_hinted_value = True
    assert solver.status_name(solver.solve(placing.model)) in ("OPTIMAL", "FEASIBLE")
    assert [solver.value(start) for start in timing.start] == [0, 5, 11]
    sent = [arrival for arrival, received in placing.received.items() if solver.value(received)]
    assert sent == [(0, 1), (1, 0)]


def _search(problem: Problem, seed: int) -> Search:
    """A search whose best is a decision at random, by one of the simulator's decoders."""
    search, decision = Search(problem), random_decision(problem, seed)
    order = np.argsort(-decision.priority, kind="stable").astype(np.int32)
    decoder = decoders_for(problem, problem.objective)[-(seed % 2)]
    search.best = search.decoding.decode(decision.placement, order, decoder)
    return search


def _goals(problem: Problem, found: Candidate) -> list[Goal]:
    if not np.isfinite(found.value):
        return []
    if not found.feasible:
        return ["shortfall"]
    load: list[Goal] = ["load"] if problem.objective == "time" != problem.transfers else []
    return [problem.objective, *(load if problem.transfers != "atomic" else [])]


def _solve_fixed(search: Search, goal: Goal) -> tuple[str, float]:
    """The status and the objective of a model whose decisions are those of the search's best."""
    cp = cp_model()
    built = build(cp, search, goal)
    solver = cp.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.fix_variables_to_their_hinted_value = True
    return solver.status_name(solver.solve(built.model)), solver.objective_value * built.unit


def _check(search: Search) -> None:
    for goal in _goals(search.problem, search.incumbent):
        status, value = _solve_fixed(search, goal)
        result = search.incumbent
        # A shortfall is no bound, and rounded capacities may make it larger.
        known = np.inf if goal == "shortfall" else result.value
        assert (status, value <= known) == ("OPTIMAL", True), goal


# The model is a relaxation: schedules are solutions, and no plan is better than its optimum.
@pytest.mark.parametrize("first", range(0, 96, 12))
def test_every_schedule_is_a_solution_that_is_no_worse(first: int) -> None:
    for seed in range(first, first + 12):
        _check(_search(small_problem(seed), seed))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_schedules_of_larger_problems_are_solutions(objective: Any) -> None:
    """Rules, transfers and memory are combined in every way."""
    for seed in range(30):
        drawn = random_problem(seed)
        _check(_search(dataclasses.replace(drawn, objective=objective), seed))
