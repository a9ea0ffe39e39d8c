"""Local search in windows of the order."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from situate import _core
from situate.bench.families.unequal import layered
from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.simulation.decoding import scheduled
from situate.simulation.simulator import Simulator
from situate.solvers.auto.improve.windows import MIN_OPS, sweep_at_once, sweep_windows
from situate.solvers.budget import Budget
from situate.solvers.evaluate import evaluate
from situate.solvers.heuristics.list_rules import heft
from situate.solvers.search import Search
from tests.oracle.problems import random_decision, random_problem
from tests.solvers.families import chain, devices
from tests.solvers.families import graph as small_graph

NO_ROOM = 0


def windows(problem: Problem, placement: np.ndarray, seed: int, room: int = 10**9):
    core, order = Simulator(problem).core, np.array(problem.graph.order, np.int32)
    rooms = np.full(problem.d, room, np.int64)
    return _core.search.make_window_searches(core, seed, 1, placement, order, rooms)


def makespan(problem: Problem, placement: np.ndarray, order: np.ndarray) -> float:
    return scheduled(Simulator(problem), placement, order, "serial").makespan


def reaching(seed: int, n: int = 600) -> Graph:
    """Ops with edges that reach over a few or over many others, often past a window."""
    draw = np.random.default_rng(seed)
    edges = {(i, i + int(reach)) for i in range(n) for reach in (6, draw.integers(1, 150))}
    return small_graph(n, sorted(e for e in edges if e[1] < n), 50, list(draw.uniform(0.1, 1, n)))


# As a sweep begins, the cost is the makespan of the serial decoder.


@pytest.mark.parametrize("rules", ["situate", "doppler"])
@pytest.mark.parametrize("seed", range(6))
def test_the_longest_way_is_the_makespan(seed: int, rules: str) -> None:
    cluster = devices(1, 1, 1, 1, transfers="overlapped", bandwidth=300.0)
    problem = Problem(reaching(seed), cluster, "time", rules)  # type: ignore[arg-type]
    start = np.random.default_rng(seed).integers(4, size=problem.n).astype(np.int32)
    search = windows(problem, start, seed)
    for moves in (0.0, 1.0, 4.0):
        search.run(moves, math.inf, 1)
        assert search.swept(0) == 0
        cost, placement, order = search.plan(0)
        assert cost == pytest.approx(makespan(problem, placement, order), rel=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_small_steps_are_one_window_and_ops_stay_where_they_may_run(seed: int) -> None:
    drawn = random_problem(seed)
    problem = Problem(drawn.graph, replace(drawn.cluster, transfers="overlapped"))
    start = random_decision(problem, seed).placement
    search = windows(problem, start, seed)
    before = search.plan(0)[0]
    search.run(50.0, math.inf, 1)
    cost, placement, order = search.plan(0)
    assert cost <= before
    names = [problem.cluster.names[device] for device in placement]
    result = evaluate(problem, dict(zip((op.name for op in problem.graph.ops), names, strict=True)))
    result.schedule.verify(problem, allow_overflow=True)
    assert sorted(order) == list(range(problem.n))


# Sweeps shorten a step.


@pytest.mark.parametrize("seed", range(3))
def test_sweeps_shorten_a_long_step_from_end_to_end(seed: int) -> None:
    problem = Problem(reaching(seed, 3000), devices(1, 1, 1, 1, bandwidth=300.0))
    start = np.random.default_rng(seed).integers(4, size=problem.n).astype(np.int32)
    search = windows(problem, start, seed)
    before = search.plan(0)[0]
    for _ in range(3):
        search.run(8.0, math.inf, 1)
    _, placement, order = search.plan(0)
    assert makespan(problem, placement, order) < 0.8 * before


@pytest.mark.parametrize("place", [100, 500, 900])
def test_an_op_away_from_its_chain_comes_back(place: int) -> None:
    problem = Problem(chain(1000), devices(1, 1))
    placement = np.zeros(1000, np.int32)
    placement[place] = 1
    search = windows(problem, placement, 0)
    assert search.plan(0)[0] == 1002
    search.run(4.0, math.inf, 1)
    assert search.plan(0)[0] == 1000


def test_a_device_without_room_takes_no_op_that_holds_bytes() -> None:
    ops = tuple(Op(f"op{j}", seconds={"x1": 1.0}, persistent=1) for j in range(200))
    tensors = tuple(Tensor(f"t{j}", j, 1, (j + 1,)) for j in range(199))
    problem = Problem(Graph("held", ops, tensors), devices(1, 1))
    start = (np.arange(200) % 2).astype(np.int32)
    search = windows(problem, start, 0, room=NO_ROOM)
    search.run(10.0, math.inf, 1)
    assert search.plan(0)[1].tolist() == start.tolist()


# The core checks its arguments.


def test_the_core_refuses_plans_and_room_of_another_size() -> None:
    problem = Problem(chain(4), devices(1, 1))
    core, order = Simulator(problem).core, np.arange(4, dtype=np.int32)
    placement, room = np.zeros(4, np.int32), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="room"):
        _core.search.make_window_searches(core, 0, 1, placement, order, room[:1])
    with pytest.raises(ValueError, match="one"):
        _core.search.make_window_searches(core, 0, 1, placement[:3], order, room)
    search = _core.search.make_window_searches(core, 0, 1, placement, order, room)
    with pytest.raises(ValueError, match="moves"):
        search.run(-1.0, math.inf, 1)


def test_windows_are_for_overlapped_transfers() -> None:
    problem = Problem(chain(4), devices(1, 1, transfers="blocking"))
    with pytest.raises(ValueError, match="overlapped"):
        windows(problem, np.zeros(4, np.int32), 0)


# `auto` sweeps over large steps that have a time limit.


def searched(ops: int, budget: Budget) -> tuple[float, Search]:
    search = Search(Problem(layered(ops, 0), Cluster.preset("h100-8")), budget=budget)
    heft(search)
    before = search.incumbent.value
    sweep_windows(search)
    return before, search


def test_a_large_plan_gets_shorter_by_sweeps() -> None:
    before, search = searched(MIN_OPS, Budget(60.0))
    assert search.incumbent.feasible
    assert search.incumbent.value < 0.99 * before
    search.incumbent.schedule.verify(search.problem)


@pytest.mark.parametrize(
    ("ops", "budget"), [(MIN_OPS, Budget(evaluation_limit=10**6)), (MIN_OPS - 1, Budget(60.0))]
)
def test_small_steps_and_limits_of_evaluations_leave_sweeps_out(ops: int, budget: Budget) -> None:
    before, search = searched(ops, budget)
    assert search.incumbent.value == before


def test_searches_with_time_for_hill_climbing_do_not_sweep_at_once() -> None:
    before, search = searched(MIN_OPS, Budget(evaluation_limit=10**6))
    search.budget.time_limit = 1e6
    sweep_at_once(search)
    assert search.incumbent.value == before
