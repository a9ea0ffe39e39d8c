"""Sources without work read nothing and take no time."""

from __future__ import annotations

from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers.idle_sources import idle_sources
from tests.solvers.families import devices


def test_a_source_is_idle_where_it_takes_no_time_on_any_device() -> None:
    ops = (
        Op("parameter", seconds={"*": 0.0}),
        Op("on one device alone", seconds={"d1": 0.0}),
        Op("works", seconds={"d0": 0.0, "d1": 1.0}),
        Op("reads", seconds={"*": 0.0}),
    )
    graph = Graph("g", ops, (Tensor("t", 0, 1, (3,)),))
    assert idle_sources(Problem(graph, devices(1, 1))).tolist() == [True, True, False, False]


def test_what_waits_is_no_source() -> None:
    ops = (Op("a", seconds={"*": 1.0}), Op("b", seconds={"*": 0.0}))
    graph = Graph("g", ops, control=((0, 1),))
    assert not idle_sources(Problem(graph, devices(1, 1))).any()
