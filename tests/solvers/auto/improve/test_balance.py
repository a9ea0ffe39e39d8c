"""Balancing, and the live bytes that it weighs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from situate import _core
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.data.topology import pipeline_order
from situate.simulation.simulator import Simulator
from situate.solvers import solve
from situate.solvers.auto.construct.pipelines import turns
from situate.solvers.auto.improve.balance import balance, orders_count, weights
from situate.solvers.budget import Budget
from situate.solvers.search import Search
from tests.oracle.problems import random_decision, random_problem
from tests.solvers.families import apart, chain, devices


# The bytes that ops hold when memory is fullest, and what that leaves, agree with the peaks.
@pytest.mark.parametrize("rules", ["situate", "regal"])
def test_what_is_weighed_and_what_is_left_add_up_to_the_peak(rules: str) -> None:
    for seed in range(200):
        drawn = random_problem(seed)
        problem = Problem(drawn.graph, drawn.cluster, "throughput", RULES[rules])
        drawn_plan = random_decision(problem, seed)
        schedule = Simulator(problem).schedule(drawn_plan.placement, drawn_plan.priority)
        resident, room = weights(problem, schedule)
        on_device = np.bincount(schedule.placement, resident, minlength=problem.d)
        assert (resident >= problem.persistent).all()
        assert (on_device <= schedule.peak).all()
        assert (problem.capacity - room + on_device == schedule.peak).all()


def test_an_op_holds_what_it_made_while_it_lives() -> None:
    """Each op of a chain makes 4 bytes: two tensors live at once, an input and an output."""
    problem = Problem(chain(5, size=4), devices(1, memory=8), "throughput")
    order = np.arange(5, 0, -1, dtype=np.float32)
    resident, room = weights(problem, Simulator(problem).schedule(np.zeros(5, np.int32), order))
    assert sorted(resident.tolist()) == [0, 0, 0, 4, 4]
    assert room.tolist() == [8]


def test_orders_count_where_live_tensors_may_not_fit() -> None:
    graph = chain(5, size=4)
    assert orders_count(Problem(graph, devices(1, 1, memory=15)))
    assert not orders_count(Problem(graph, devices(1, 1, memory=30)))
    assert not orders_count(
        Problem(graph, devices(1, 1, memory=15), rules=RULES["dnn-partitioning"])
    )


# Balancing: the busiest device of steady operation, and the core's account of it.
def test_a_pipeline_is_balanced() -> None:
    problem = Problem(chain(12, seconds=[1.0, 2.0] * 6), devices(1, 1, 1), "throughput")
    result = solve(problem, time_limit=None, evaluations=2000)
    assert result.value == 6
    assert result.gap < 1e-9


def test_what_no_cut_balances_is_annealed() -> None:
    """Sixteen ops without edges on three devices: no three pieces of the line are as long as one
    another, nor do devices that trade all they have become so."""
    seconds = [8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0] * 2
    problem = Problem(apart(16, seconds=seconds), devices(1, 1, 1), "throughput")
    search = Search(problem, budget=Budget(evaluation_limit=4000), threads=1)
    search.offer(np.zeros(16, np.int32), np.arange(16, dtype=np.int32))
    balance(search)
    assert search.best is not None
    assert search.best.value == 24


def test_what_only_one_device_can_run_is_left_alone() -> None:
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}, device="d0") for j in range(3))
    problem = Problem(Graph("pinned", ops), devices(1, 1), "throughput")
    search = Search(problem, budget=Budget(evaluation_limit=100), threads=1)
    search.offer(np.zeros(3, np.int32), np.arange(3, dtype=np.int32))
    before = search.budget.evaluations
    balance(search)
    assert search.budget.evaluations == before


@pytest.mark.parametrize("chunk", range(6))
def test_the_core_knows_the_period_of_its_best_plan(chunk: int) -> None:
    """Over moves, splits and restarts; and its plans keep units together where they may run."""
    for seed in range(chunk, 90, 6):
        drawn = random_problem(seed)
        for rules in (drawn.rules, *RULES.values()) if drawn.d > 1 else ():
            _balance(Problem(drawn.graph, drawn.cluster, "throughput", rules), seed)


def _balance(problem: Problem, seed: int) -> None:
    core, line = Simulator(problem).core, pipeline_order(problem)
    placement = random_decision(problem, seed).placement
    balancers = _core.search.make_load_annealers(core, seed, 1, placement, line)
    for turn in turns(problem):
        balancers.split(turn, 1 + seed % 3)
        _check_period(problem, problem.persistent, problem.capacity, *balancers.best(0))
    resident, room = problem.persistent, problem.capacity
    for temperature in (1.0, 0.01):
        balancers.run(temperature, 300, math.inf, 1)
        _check_period(problem, resident, room, *balancers.best(0))
        balancers.restart(0, random_decision(problem, seed + 1).placement)
        _check_period(problem, resident, room, *balancers.best(0))
        resident, room = resident + np.arange(problem.n), room - 3
        balancers.weigh(0, resident, room)
        _check_period(problem, resident, room, *balancers.best(0))


def _check_period(
    problem: Problem, resident: Any, room: Any, fits: bool, period: float, placement: Any
) -> None:
    schedule = Simulator(problem).schedule(placement, np.zeros(problem.n, np.float32))
    assert period == pytest.approx(schedule.period(problem), rel=1e-9, abs=1e-12)
    on_device = np.bincount(placement, resident, minlength=problem.d)
    assert fits == bool((on_device <= room).all())
    assert problem.allowed[problem.unit, placement].all()
    first = [np.flatnonzero(problem.unit == unit)[0] for unit in problem.unit]
    assert (placement == placement[first]).all()
