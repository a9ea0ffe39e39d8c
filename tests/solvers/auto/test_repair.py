"""Repair: units spill or move until a plan fits."""

from __future__ import annotations

import numpy as np

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.solvers.auto.repair import move_until_it_fits, offer_until_it_fits, spill
from situate.solvers.budget import Budget
from situate.solvers.search import Search
from tests.solvers.families import chain, devices
from tests.solvers.training import LAYERS, gpus, training


def _search(problem: Problem) -> Search:
    return Search(problem, budget=Budget(evaluation_limit=100), threads=1)


def _roomy_cpu(gpu_memory: int, cpu_seconds: list[float], **op: int) -> Problem:
    """Ops without edges that hold 10 bytes each, on a small GPU and a CPU without a limit."""
    ops = tuple(
        Op(f"op{j}", seconds={"gpu": 1.0, "cpu": seconds}, persistent=10, **op)
        for j, seconds in enumerate(cpu_seconds)
    )
    pair = (Device("gpu0", memory=gpu_memory), Device("cpu0", kind="cpu"))
    return Problem(Graph("held", ops), Cluster("pair", pair, (Link("*", "*", 1.0),)))


def test_what_loses_least_for_its_bytes_spills_until_the_plan_fits() -> None:
    problem = _roomy_cpu(50, [9, 2, 9, 3, 9, 4, 9, 5])
    search = _search(problem)
    offer_until_it_fits(search, np.zeros(8, np.int32), np.arange(8, dtype=np.int32))
    assert search.best is not None
    assert search.best.feasible
    assert search.best.placement.tolist() == [0, 1, 0, 1, 0, 1, 0, 1]


def test_nothing_moves_where_there_is_no_room() -> None:
    cluster = devices(1, 1, memory=30)
    problem = Problem(chain(8, persistent=10), cluster)
    search = _search(problem)
    offer_until_it_fits(search, np.zeros(8, np.int32), np.arange(8, dtype=np.int32))
    assert search.best is not None
    assert not search.best.feasible
    assert search.budget.evaluations <= 4


def test_spilling_ends_with_the_budget() -> None:
    problem = _roomy_cpu(50, [9.0] * 8)
    search = Search(problem, budget=Budget(evaluation_limit=1), threads=1)
    offer_until_it_fits(search, np.zeros(8, np.int32), np.arange(8, dtype=np.int32))
    assert search.budget.evaluations <= 2


def test_what_lies_at_a_cut_is_moved_until_the_plan_fits() -> None:
    problem = training(gpus(50, 50))
    search = Search(problem, budget=Budget(evaluation_limit=1000), threads=1)
    placement = np.zeros(problem.n, np.int32)
    placement[LAYERS - 2 : LAYERS + 2] = 1
    result = search.offer(placement, np.array(problem.graph.order, np.int32))
    assert not result.feasible
    move_until_it_fits(search, result)
    assert search.best is not None
    assert search.best.feasible


def test_mending_ends_with_its_part_of_the_budget() -> None:
    problem = training(gpus(5, 5))
    search = Search(problem, budget=Budget(evaluation_limit=100), threads=1)
    halves = np.repeat(np.arange(2, dtype=np.int32), LAYERS)
    result = search.offer(halves, np.array(problem.graph.order, np.int32))
    move_until_it_fits(search, result)
    assert search.budget.evaluations <= 15


LINKS = (Link("*", "*", 1.0),)


def _spilled(problem: Problem, *placement: int) -> list[int]:
    """Where units are once those that do not fit have moved."""
    order = np.array(problem.graph.order, np.int32)
    result = _search(problem).offer(np.array(placement, np.int32), order)
    return list(spill(problem, result))


def _held(cluster: Cluster, *seconds: dict[str, float], bytes_: int = 10) -> Problem:
    """Ops without edges that hold as many bytes, and how long each kind of device takes."""
    ops = tuple(Op(f"op{j}", seconds=each, persistent=bytes_) for j, each in enumerate(seconds))
    return Problem(Graph("held", ops), cluster)


def test_what_counts_is_how_much_longer_it_takes_and_not_how_long() -> None:
    pair = Cluster("pair", (Device("gpu", memory=11), Device("cpu", kind="cpu")), LINKS)
    problem = _held(pair, {"gpu": 9.0, "cpu": 10.0}, {"gpu": 1.0, "cpu": 5.0})
    assert _spilled(problem, 0, 0) == [1, 0]


def test_what_other_devices_hold_stays_there() -> None:
    three = tuple(Device(name, memory=bytes_) for name, bytes_ in (("a", 11), ("b", 20), ("c", 40)))
    problem = _held(Cluster("three", three, LINKS), *[{"gpu": 1.0}] * 4)
    assert _spilled(problem, 1, 0, 0, 1) == [1, 2, 0, 1]


def test_what_one_device_has_taken_leaves_less_room_for_what_the_next_gives_up() -> None:
    four = tuple(Device(f"d{i}", memory=bytes_) for i, bytes_ in enumerate((11, 11, 20, 15)))
    problem = _held(Cluster("four", four, LINKS), *[{"gpu": 1.0}] * 4)
    assert _spilled(problem, 0, 0, 1, 1) == [2, 0, 3, 1]


def test_activations_that_do_not_fit_are_not_spilled() -> None:
    pair = Cluster("pair", (Device("small", "x1", memory=15), Device("large", "x1")), LINKS)
    problem = Problem(chain(4, size=10), pair)
    assert _spilled(problem, 0, 0, 0, 0) == [0, 0, 0, 0]
