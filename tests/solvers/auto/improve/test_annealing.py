"""Annealing: its chains know the cost of their best plans and change ops that delay the step."""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from situate import _core
from situate.bench.families.regal import synthetic
from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.data.topology import pipeline_order
from situate.simulation.decoding import scheduled
from situate.simulation.simulator import Simulator
from situate.simulation.transfer_order import TransferOrder
from situate.solvers import solve
from situate.solvers.auto.improve.blocks import Blocks
from situate.solvers.evaluate import evaluate
from tests.oracle.problems import random_decision, random_problem
from tests.solvers.families import chain, devices, fork
from tests.solvers.families import graph as small_graph


@pytest.mark.parametrize("goal", ["time", "memory", "shortfall"])
@pytest.mark.parametrize("chunk", range(6))
def test_the_core_knows_the_cost_of_its_best_plan(chunk: int, goal: str) -> None:
    """Over moves, refusals, restarts and cuts: by a serial decoding from scratch, to the last bit.

    Exact where transfers are blocking, or every pair has its channel and every op takes time.
    """
    for seed in range(chunk, 90, 6):
        problem = _exact(random_problem(seed), seed)
        first, second = random_decision(problem, seed), random_decision(problem, seed + 1)
        order = np.array(problem.graph.order, np.int32)
        core = Simulator(problem).core
        annealers = _core.search.make_annealers(core, goal, seed, 1, first.placement, order)
        annealers.move_blocks(*_halves(problem), 3)
        annealers.typical_change(50)
        for number, temperature in enumerate((100.0, 1.0, 0.1, 0.0)):
            annealers.use_power_mean(0, number % 2 == 0)
            annealers.run(temperature, 200, math.inf, 1)
            _check_cost(problem, goal, *annealers.best(0))
            annealers.restart(0, second.placement, order)
            _check_cost(problem, goal, *annealers.best(0))


@pytest.mark.parametrize(
    ("transfers", "rules"),
    [("overlapped", "situate"), ("blocking", "situate"), ("overlapped", "doppler")],
)
@pytest.mark.parametrize("room", [0.7, 10.0], ids=["tight", "ample"])
@pytest.mark.parametrize("seed", range(4))
def test_moves_that_affect_few_of_many_ops_are_timed_to_the_last_bit(
    seed: int, room: float, transfers: str, rules: str
) -> None:
    """Timing stops where all devices are as before, so a plan is the sum of many parts."""
    draw = np.random.default_rng(seed)
    edges = {(i, i + int(reach)) for i in range(600) for reach in (6, draw.integers(1, 150))}
    graph = small_graph(
        600, sorted(e for e in edges if e[1] < 600), 50, list(draw.uniform(0.1, 1, 600))
    )
    alone = evaluate(Problem(graph, devices(1)), {op.name: "d0" for op in graph.ops})
    memory = int(room * alone.peak_memory["d0"])
    cluster = devices(1, 1, 1, 1, memory=memory, transfers=transfers, bandwidth=1000.0)
    problem = Problem(graph, cluster, "time", rules)
    order = np.array(graph.order, np.int32)
    start = draw.integers(4, size=600).astype(np.int32)
    core = Simulator(problem).core
    annealers = _core.search.make_annealers(core, "time", seed, 1, start, order)
    for temperature in (1.0, 0.1, 0.0):
        annealers.run(temperature, 1000, math.inf, 1)
        _check_cost(problem, "time", *annealers.best(0))


def test_the_core_tells_what_empties_another_device_than_the_fullest() -> None:
    large = Op("large", seconds={"x2": 1.0}, persistent=10**6)
    small = [Op(f"op{j}", seconds={"x1": 1.0}) for j in range(8)]
    tensors = tuple(Tensor(f"t{j}", j, 10, (j + 1,)) for j in range(7))
    problem = Problem(Graph("two sizes", (*small, large), tensors), devices(1, 1, 2), "memory")
    placement = np.array([0] * 8 + [2], np.int32)
    order, core = np.arange(9, dtype=np.int32), Simulator(problem).core
    annealers = _core.search.make_annealers(core, "memory", 0, 1, placement, order)
    assert annealers.typical_change(50) > 0
    assert annealers.best(0)[1] == 10**6


@pytest.mark.parametrize(("seed", "peak"), [(8, 55), (17, 40), (38, 83)])
def test_chains_that_prefer_level_peaks_reach_plans_that_fewer_bytes_do_not(
    seed: int, peak: int
) -> None:
    drawn = random_problem(seed)
    problem = Problem(drawn.graph, drawn.cluster, "memory")
    assert solve(problem, time_limit=None, evaluations=4000).value == peak


@pytest.mark.parametrize("seed", range(5))
def test_a_chain_goes_on_from_a_plan_whose_transfers_are_early(seed: int) -> None:
    problem = Problem(synthetic("er", 60, seed, bandwidth=1.0), Cluster.identical(2))
    core, order = Simulator(problem).core, np.array(problem.graph.order, np.int32)
    placement = np.arange(problem.n, dtype=np.int32) % 2
    annealers = _core.search.make_annealers(core, "time", seed, 1, placement, order)
    annealers.run(100.0, 3000, math.inf, 1)
    _, cost, result, by, sent = annealers.best(0)
    assert len(sent[0])
    _check_cost(problem, "time", *annealers.best(0))
    other = _core.search.make_annealers(core, "time", seed, 1, placement, order)
    assert other.best(0)[1] > cost
    other.restart(0, result, by, sent)
    assert other.best(0)[1] == cost


LINKS = 1000


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("away", [False, True])
def test_annealing_looks_where_the_step_is_held_up(away: bool, seed: int) -> None:
    """One op of a thousand is where it should not be: on the device that a chain keeps busy, or
    away from the rest of the chain."""
    graph = chain(LINKS)
    beside = Op("beside", seconds={"x1": 1.0})
    graph = graph if away else Graph("beside", (*graph.ops, beside), graph.tensors)
    problem = Problem(graph, devices(1, 1))
    placement, order = np.zeros(problem.n, np.int32), np.arange(problem.n, dtype=np.int32)
    placement[LINKS // 2] = away
    order = np.insert(order[:LINKS], LINKS // 2, order[LINKS:]).astype(np.int32)
    annealers = _core.search.make_annealers(
        Simulator(problem).core, "time", seed, 1, placement, order
    )
    annealers.run(0.0, 100, math.inf, 1)
    assert annealers.best(0)[1] == LINKS


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("goal", "room"), [("memory", 1000), ("shortfall", 50)])
@pytest.mark.parametrize("rules", ["situate", "regal"])
def test_annealing_looks_where_memory_is_fullest(
    rules: Any, goal: str, room: int, seed: int
) -> None:
    """Two large tensors amid a thousand small ones are there together and need not be."""
    small, first = chain(LINKS), LINKS
    large = [Op(name, seconds={"x1": 1.0}) for name in ("make a", "make b", "use b", "use a")]
    tensors = (Tensor("a", first, 100, (first + 3,)), Tensor("b", first + 1, 100, (first + 2,)))
    graph = Graph("two at once", (*small.ops, *large), (*small.tensors, *tensors))
    problem = Problem(graph, devices(1, memory=room), "memory", rules)
    order = np.insert(np.arange(LINKS), LINKS // 2, first + np.arange(4)).astype(np.int32)
    placement = np.zeros(problem.n, np.int32)
    annealers = _core.search.make_annealers(
        Simulator(problem).core, goal, seed, 1, placement, order
    )
    annealers.run(0.0, 100, math.inf, 1)
    assert annealers.best(0)[1] < 200 - room * (goal == "shortfall")


def test_the_core_refuses_transfers_that_do_not_exist() -> None:
    problem = random_problem(1)
    core, order = Simulator(problem).core, np.array(problem.graph.order, np.int32)
    placement = random_decision(problem, 1).placement
    annealers = _core.search.make_annealers(core, "time", 0, 1, placement, order)
    none, one = np.zeros(0, np.int32), np.zeros(1, np.int32)
    for sent in (one, one, none), (one + len(problem.size), one, one), (one, one - 1, one):
        with pytest.raises(ValueError, match="transfer"):
            annealers.restart(0, placement, order, sent)


def _halves(problem: Problem) -> Blocks:
    """Two blocks, which share no unit."""
    units = np.arange(problem.units, dtype=np.int32)
    start = np.unique([0, problem.units // 2, problem.units]).astype(np.int32)
    return Blocks(start, units, np.arange(len(start) - 1, dtype=np.int32))


def _exact(drawn: Problem, seed: int) -> Problem:
    own = tuple(structs.replace(link, channel="") for link in drawn.cluster.links)
    ops = tuple(
        structs.replace(op, seconds={d: s + 0.01 for d, s in (op.seconds or {}).items()})
        for op in drawn.graph.ops
    )
    rules = (drawn.rules, *list(RULES.values())[:3])[seed % 4]
    blocking = "blocking" in (rules.transfers or drawn.cluster.transfers)
    links = drawn.cluster.links if blocking else own
    cluster = dataclasses.replace(drawn.cluster, links=links)
    return Problem(dataclasses.replace(drawn.graph, ops=ops), cluster, "time", rules)


def _check_cost(
    problem: Problem, goal: str, fits: bool, cost: float, placement: Any, order: Any, early: Any
) -> None:
    simulator, sent = Simulator(problem), None
    if goal == "time" and problem.transfers == "blocking" and _fits_one_device(problem):
        sent = TransferOrder(*early)
        if not len(sent):
            sent = TransferOrder(
                *_core.simulation.blocking_transfers(simulator.core, placement, order)
            )
    schedule = scheduled(simulator, placement, order, "serial", sent)
    schedule.verify(problem, allow_overflow=True)
    over = schedule.overflow(problem)
    value = schedule.makespan if goal == "time" else float(schedule.peak.max())
    assert fits == (not over.any())
    if goal == "shortfall":
        assert cost == over.sum()
    elif fits:
        assert cost == value
    else:
        shares = (over / problem.capacity).sum()
        assert cost == pytest.approx(value * (1.05 + 10 * shares), rel=1e-9)


def _fits_one_device(problem: Problem) -> bool:
    """True where memory cannot matter, whatever is where."""
    held = problem.persistent.sum()
    if problem.rules.memory != "persistent":
        held += problem.workspace.max(initial=0) + problem.size.sum()
    return bool(held <= problem.capacity.min())


def test_the_core_refuses_what_is_no_decision_of_its_problem() -> None:
    problem = random_problem(1)
    core, order = Simulator(problem).core, np.array(problem.graph.order, np.int32)
    placement, nowhere = random_decision(problem, 1).placement, np.full_like(order, problem.d)
    annealers = _core.search.make_annealers(core, "time", 0, 1, placement, order)
    balancers = _core.search.make_load_annealers(core, 0, 1, placement, pipeline_order(problem))
    for restart in partial(annealers.restart, 0, order=order), partial(balancers.restart, 0):
        with pytest.raises(ValueError, match="a placement has one entry an op"):
            restart(placement=placement[:-1])
        with pytest.raises(ValueError, match="names a device that does not exist"):
            restart(placement=nowhere)
        with pytest.raises(ValueError, match="puts an op where it may not run"):
            restart(placement=problem.allowed.argmin(axis=1)[problem.unit].astype(np.int32))
    with pytest.raises(ValueError, match="an order has one entry an op"):
        annealers.restart(0, placement, order[:-1])
    with pytest.raises(ValueError, match="bytes have one entry an op"):
        balancers.weigh(0, problem.persistent[:-1], problem.capacity)
    with pytest.raises(ValueError, match="capacities have one entry a device"):
        balancers.weigh(0, problem.persistent, problem.capacity[:-1])
    with pytest.raises(ValueError, match="names a device that does not exist"):
        balancers.split(nowhere[:1], 1)
    with pytest.raises(ValueError, match="at least one device"):
        balancers.split(nowhere[:0], 1)


def test_places_of_transfers_are_refused_where_they_overlap() -> None:
    problem = Problem(fork(4), devices(1, 1))
    core, placement = Simulator(problem).core, np.zeros(problem.n, np.int32)
    order = np.array(problem.graph.order, np.int32)
    with pytest.raises(ValueError, match="transfers have places only where they are blocking"):
        _core.simulation.blocking_transfers(core, placement, order)
    annealers = _core.search.make_annealers(core, "time", 0, 1, placement, order)
    one = np.zeros(1, np.int32)
    with pytest.raises(ValueError, match="transfers have places only where they are blocking"):
        annealers.restart(0, placement, order, (one, one + 1, one))
