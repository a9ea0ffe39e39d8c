"""Contiguous pieces of the network, one a device."""

from __future__ import annotations

import numpy as np
import pytest

from situate import _core
from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.simulation.simulator import Simulator
from situate.solvers.auto.construct.pipelines import _step, fill, offer_pipelines, turns
from situate.solvers.budget import Budget
from situate.solvers.search import Search
from tests.solvers.families import apart, chain, devices


def _search(problem: Problem) -> Search:
    return Search(problem, budget=Budget(evaluation_limit=100), threads=1)


def test_a_cpu_takes_every_place_of_the_turn() -> None:
    three = (Device("a"), Device("b"), Device("c", kind="cpu"))
    ops = (Op("op", seconds={"*": 1.0}),)
    problem = Problem(Graph("g", ops), Cluster("three", three, (Link("*", "*", 1.0),)))
    assert [turn.tolist() for turn in turns(problem)] == [[0, 1, 2], [2, 0, 1], [0, 2, 1]]


def test_devices_are_filled_one_after_the_other() -> None:
    placement = fill(Problem(chain(6, persistent=10), devices(1, 1, 1, memory=30)))
    assert placement.tolist() == [0, 0, 1, 1, 2, 2]


def test_a_device_is_filled_to_the_last_byte() -> None:
    placement = fill(Problem(chain(6, persistent=10), devices(1, 1, memory=33)))
    assert placement.tolist() == [0, 0, 0, 1, 1, 1]


def test_what_may_not_go_where_there_is_room_goes_where_it_may() -> None:
    ops = (*chain(3, persistent=10).ops, Op("pinned", seconds={"*": 1.0}, device="d1"))
    assert fill(Problem(Graph("g", ops), devices(1, 1))).tolist() == [0, 0, 0, 1]


def test_a_cpu_is_filled_last() -> None:
    three = (Device("c", kind="cpu"), Device("a", memory=20), Device("b", memory=20))
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}, persistent=10) for j in range(5))
    problem = Problem(Graph("g", ops), Cluster("three", three, (Link("*", "*", 1.0),)))
    assert fill(problem).tolist() == [1, 1, 2, 2, 0]


@pytest.mark.parametrize(("units", "step"), [(10, 1), (1000, 1), (4000, 4), (16000, 64)])
def test_a_longer_line_is_cut_at_fewer_places(units: int, step: int) -> None:
    assert _step(_search(Problem(apart(units), devices(1, 1)))) == step


def test_a_line_is_cut_at_fewer_places_in_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    search = _search(Problem(apart(4000), devices(1, 1)))
    steps = []
    for affordable in (400, 200, 199, 24):
        monkeypatch.setattr(
            search.budget, "affords", lambda offers, most=affordable: offers <= most
        )
        steps.append(_step(search))
    assert steps == [4, 8, 16, None]


def test_the_cut_with_the_shortest_period_is_offered() -> None:
    """Two pieces of 4 s each; a transfer is a tenth of a second."""
    problem = Problem(
        chain(4, seconds=[3.0, 1.0, 1.0, 3.0]), devices(1, 1, bandwidth=10), "throughput"
    )
    search = _search(problem)
    search.offer(np.zeros(4, np.int32), np.arange(4, dtype=np.int32))
    offer_pipelines(search)
    assert search.best is not None
    assert search.best.value == 4.0
    assert sorted(search.best.placement.tolist()) == [0, 0, 1, 1]


def test_pieces_that_fit_are_found_though_what_does_not_fit_has_a_shorter_period() -> None:
    memory = (2, 5, 5)
    three = tuple(Device(f"d{i}", kind="x1", memory=bytes_) for i, bytes_ in enumerate(memory))
    links = (Link("*", "*", 1e9),)
    graph = chain(12, persistent=1, size=0)
    problem = Problem(graph, Cluster("three", three, links), "throughput")
    line = np.arange(12, dtype=np.int32)
    balancers = _core.search.make_load_annealers(Simulator(problem).core, 0, 1, line // 4, line)
    balancers.split(np.arange(3, dtype=np.int32), 1)
    fits, period, placement = balancers.best(0)
    assert fits
    assert period == 5
    assert np.bincount(placement).tolist() == [2, 5, 5]
