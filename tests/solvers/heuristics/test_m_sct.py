"""`m_sct` lets devices wait for the favourite children of their ops."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.errors import MissingExtra
from situate.solvers import solve
from situate.solvers.heuristics.m_etf import offer_earliest
from situate.solvers.incumbent import Candidate
from situate.solvers.search import Search
from tests.solvers.families import chain, devices, layered
from tests.solvers.programs import needs_highs


def with_favourites(problem: Problem, favourites: dict[int, int]) -> Candidate:
    favourite = np.full(problem.n, -1, np.int32)
    for op, child in favourites.items():
        favourite[op] = child
    search = Search(problem)
    offer_earliest(search, favourite)
    return search.incumbent


def test_no_favourites_are_m_etf() -> None:
    for seed in range(10):
        problem = Problem(layered(6, 6, seed), devices(1, 1, 2))
        found = with_favourites(problem, {})
        assert np.array_equal(found.placement, solve(problem, "m_etf").placement)
        assert np.array_equal(found.order, solve(problem, "m_etf").order)


def waiting(other_on_d1: float) -> Problem:
    """d0 is free at 1 s, and d1 at 5 s. At 4 s d0 can start the child of its first op, d1 not
    before 10 s. Another op of 10 s can start on d0 at 1.5 s, and on d1 when it is free."""
    ops = (
        Op("a", seconds={"*": 1.0}, device="d0"),
        Op("b", seconds={"*": 1.0}, device="d1"),
        Op("child", seconds={"d0": 1.0, "d1": 1.0}),
        Op("source", seconds={"*": 1.0}, device="d2"),
        Op("other", seconds={"d0": 10.0, "d1": 10.0}),
        Op("busy", seconds={"*": other_on_d1 - 1}, device="d1"),
    )
    tensors = (
        Tensor("a", 0, 9, (2,)),
        Tensor("b", 1, 3, (2,)),
        Tensor("s", 3, 1, (4,), seconds=0.5),
    )
    return Problem(Graph("g", ops, tensors), devices(1, 1, 1))


def place_of(op: int, found: Candidate) -> int:
    return found.order.tolist().index(op)


def test_a_device_waits_for_a_favourite_child() -> None:
    """m-ETF starts the other op, and the child goes elsewhere."""
    without, having = (with_favourites(waiting(5), favourites) for favourites in ({}, {0: 2}))
    assert place_of(4, without) < place_of(2, without)
    assert without.placement[[2, 4]].tolist() == [1, 0]
    assert place_of(2, having) < place_of(4, having)
    assert having.placement[2] == 0


def test_what_is_urgent_goes_first() -> None:
    """At 3 s the other op could start on either device."""
    found = with_favourites(waiting(3), {0: 2})
    assert place_of(4, found) < place_of(2, found)
    assert found.placement[4] == 0


def test_a_child_whose_inputs_are_still_made_is_not_waited_for() -> None:
    """b takes until 2 s; at 1.5 s d0 can start the other op."""
    problem = waiting(5)
    ops = list(problem.graph.ops)
    ops[1] = Op("b", seconds={"*": 2.0}, device="d1")
    ops[5] = Op("busy", seconds={"*": 3.0}, device="d1")
    later = Problem(Graph("g", tuple(ops), problem.graph.tensors), problem.cluster)
    found = with_favourites(later, {0: 2})
    assert place_of(4, found) < place_of(2, found)


@needs_highs
def test_a_chain_stays_where_it_began() -> None:
    assert solve(Problem(chain(6), devices(1, 1)), "m_sct").value == 6


@needs_highs
def test_fewer_bytes_are_sent_than_by_m_etf() -> None:
    """In the mean over twenty graphs whose transfers take about as long as their ops."""

    def sent(method: str, seed: int) -> int:
        problem = Problem(layered(8, 6, seed, size=2), devices(1, 1, 1))
        return len(solve(problem, method).schedule.tensor)

    seeds = range(20)
    assert sum(sent("m_sct", s) for s in seeds) < sum(sent("m_etf", s) for s in seeds)


@needs_highs
def test_the_same_plan_comes_out_again() -> None:
    problem = Problem(layered(8, 8, 1), devices(1, 1, 2))
    first, second = (solve(problem, "m_sct", evaluations=100) for _ in range(2))
    assert np.array_equal(first.order, second.order)
    assert np.array_equal(first.placement, second.placement)


@needs_highs
def test_without_time_for_the_program_it_is_m_etf() -> None:
    problem = Problem(layered(8, 8, 1), devices(1, 1, 2))
    hurried = solve(problem, "m_sct", time_limit=0)
    assert np.array_equal(hurried.placement, solve(problem, "m_etf").placement)


def test_without_highs_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(MissingExtra, match=r"highspy.*pip install 'situate\[baselines\]'"):
        solve(Problem(chain(6), devices(1, 1)), "m_sct")


def test_a_favourite_that_has_no_room_is_not_waited_for() -> None:
    """The child does not fit beside its parent."""
    ops = (
        Op("a", seconds={"*": 1.0}, persistent=8, device="d0"),
        Op("child", seconds={"*": 1.0}, persistent=8),
    )
    problem = Problem(Graph("g", ops, (Tensor("t", 0, 1, (1,)),)), devices(1, 1, memory=10))
    assert with_favourites(problem, {0: 1}).placement.tolist() == [0, 1]
