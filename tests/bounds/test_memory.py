"""The least bytes that the fullest device holds."""

from __future__ import annotations

import numpy as np

from situate.bounds.memory import least_peak
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import RULES, Problem
from tests.oracle.problems import random_decision, random_problem
from tests.oracle.simulator import simulate
from tests.solvers.families import apart, devices, fork


def test_the_peak_holds_a_share_a_unit_and_what_one_op_needs() -> None:
    share = Problem(apart(4, persistent=10), devices(1, 1), "memory")
    unit = Problem(apart(4, persistent=10, group="g"), devices(1, 1), "memory")
    one_op = Problem(fork(5, size=7, workspace=2), devices(1, 1), "memory")
    assert (least_peak(share), least_peak(unit), least_peak(one_op)) == (20, 40, 23)


def test_the_largest_unit_counts_and_not_the_smallest() -> None:
    ops = tuple(
        Op(name, seconds={"*": 1.0}, persistent=held) for name, held in (("a", 9), ("b", 1))
    )
    assert least_peak(Problem(Graph("g", ops), devices(1, 1), "memory")) == 9


def test_an_op_needs_what_it_hands_on_and_a_parameter_is_held_already() -> None:
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in "ab")
    handed, held = Tensor("t", 0, 7, (1,)), Tensor("u", 0, 5, (1,), resident=True)
    tail = Tensor("v", 1, 3, output=True)
    graph = Graph("g", ops, (handed, held, tail))
    assert least_peak(Problem(graph, devices(1, 1), "memory")) == 10


def test_an_op_needs_that_beside_what_its_unit_holds() -> None:
    """b runs beside the 6 bytes that its colocation group holds."""
    ops = (
        Op("a", seconds={"*": 1.0}, persistent=6, group="g"),
        Op("b", seconds={"*": 1.0}, workspace=5, group="g"),
    )
    assert least_peak(Problem(Graph("g", ops), devices(1, 1), "memory")) == 11


def test_where_only_persistent_bytes_count_tensors_need_none() -> None:
    for name, least in (("situate", 23), ("dnn-partitioning", 0)):
        problem = Problem(fork(5, size=7, workspace=2), devices(1, 1), "memory", RULES[name])
        assert least_peak(problem) == least


def test_an_op_that_takes_no_time_needs_nothing() -> None:
    problem = Problem(fork(5, size=7, seconds=0.0, workspace=2), devices(1, 1), "memory")
    assert least_peak(problem) == 0


def test_an_op_too_short_to_end_after_it_starts_needs_nothing() -> None:
    """Behind an op of 1e9 seconds one of 1e-9 ends at its start: nobody sees it hold 50 bytes."""
    ops = (Op("long", seconds={"*": 1e9}), Op("short", seconds={"*": 1e-9}, workspace=50))
    problem = Problem(Graph("g", ops, control=((0, 1),)), devices(1), "memory")
    assert simulate(problem, np.zeros(2, np.int32), np.zeros(2)).peak.tolist() == [0]
    assert least_peak(problem) == 0


def test_no_schedule_holds_less() -> None:
    met = 0
    for seed in range(300):
        problem = random_problem(seed)
        drawn = random_decision(problem, seed)
        peak = int(simulate(problem, drawn.placement, drawn.priority).peak.max())
        assert least_peak(problem) <= peak
        met += least_peak(problem) == peak
    assert met
