"""Cuts by seconds and by bytes, and what happens to a plan that does not fit."""

from __future__ import annotations

import numpy as np

from situate.cluster import Cluster, Device, Link
from situate.graph import Graph, Op
from situate.problem import Problem
from situate.solvers.auto.shares import by_bytes, by_seconds, offer_shares, offer_until_it_fits
from situate.solvers.search import Search
from tests.solvers.families import chain, devices


def _search(problem: Problem) -> Search:
    return Search(problem, 0.0, None, 100, 0, 1, None)


def _roomy_cpu(gpu_memory: int, cpu_seconds: list[float], **op: int) -> Problem:
    """Ops without edges that hold 10 bytes each, on a small GPU and a CPU without a limit."""
    ops = tuple(
        Op(f"op{j}", seconds={"gpu": 1.0, "cpu": seconds}, persistent=10, **op)
        for j, seconds in enumerate(cpu_seconds)
    )
    pair = (Device("gpu0", memory=gpu_memory), Device("cpu0", kind="cpu"))
    return Problem(Graph("held", ops), Cluster("pair", pair, (Link("*", "*", 1.0),)))


def test_a_fast_device_gets_a_longer_piece() -> None:
    placement = by_seconds(Problem(chain(9), devices(1, 2)))
    assert placement.tolist() == [0] * 6 + [1] * 3


def test_a_roomy_device_gets_a_heavier_piece() -> None:
    cluster = Cluster(
        "unequal",
        (Device("big", kind="x1", memory=300), Device("small", kind="x1", memory=100)),
        (Link("*", "*", 1.0),),
    )
    placement = by_bytes(Problem(chain(8, persistent=10), cluster))
    assert placement.tolist() == [0] * 6 + [1] * 2


def test_a_unit_goes_where_it_may_run() -> None:
    ops = (*chain(4).ops[:3], Op("pinned", seconds={"*": 1.0}, device="d0"))
    problem = Problem(Graph("g", ops), devices(1, 1))
    assert by_seconds(problem)[3] == 0
    assert by_bytes(problem)[3] == 0


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


def test_the_best_plan_so_far_is_made_to_fit() -> None:
    problem = _roomy_cpu(50, [9.0] * 8)
    search = _search(problem)
    search.offer(np.zeros(8, np.int32), np.arange(8, dtype=np.int32))
    offer_shares(search)
    assert search.best is not None
    assert search.best.feasible
