"""The least bytes that the fullest device holds."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from msgspec import structs

from situate.bounds.lower_bound import tightest_bound
from situate.bounds.memory import Need, bytes_of_best_order, bytes_of_tree, least_peak, needs
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.solvers import solve
from tests.bounds.one_device import (
    assert_brief_ops_are_not_counted,
    assert_devices_hold_no_less,
    on,
    two_parts,
)
from tests.data.test_tree_order import tree
from tests.oracle.problems import random_decision, random_problem, small_problem
from tests.oracle.simulator import simulate
from tests.solvers.exhaustive import best_values, optimum
from tests.solvers.families import apart, chain, devices, fork, graph, layered


def test_the_peak_holds_a_share_a_unit_and_what_one_op_needs() -> None:
    share = Problem(apart(4, persistent=10), devices(1, 1), "memory")
    unit = Problem(apart(4, persistent=10, group="g"), devices(1, 1), "memory")
    one_op = Problem(fork(5, size=7, workspace=2), devices(1, 1), "memory")
    assert (least_peak(share), least_peak(unit), least_peak(one_op)) == (20, 40, 23)


def test_the_largest_unit_counts_and_not_the_smallest() -> None:
    ops = tuple(
        Op(name, seconds={"*": 1.0}, persistent=sizes) for name, sizes in (("a", 9), ("b", 1))
    )
    assert least_peak(Problem(Graph("g", ops), devices(1, 1), "memory")) == 9


def test_an_op_needs_what_it_hands_on_and_a_parameter_is_held_already() -> None:
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in "ab")
    handed, resident = Tensor("t", 0, 7, (1,)), Tensor("u", 0, 5, (1,), resident=True)
    tail = Tensor("v", 1, 3, output=True)
    graph = Graph("g", ops, (handed, resident, tail))
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


def unlimited(problem: Problem) -> Problem:
    """The same on devices that hold everything."""
    machine = tuple(structs.replace(device, memory=None) for device in problem.cluster.devices)
    cluster = dataclasses.replace(problem.cluster, devices=machine)
    return dataclasses.replace(problem, cluster=cluster)


def test_no_schedule_holds_less() -> None:
    """Where there is no limit, and where it fits within those that there are."""
    met = fitting = tight = 0
    for seed in range(300):
        problem = random_problem(seed)
        decision = random_decision(problem, seed)
        peak = simulate(problem, decision.placement, decision.priority).peak
        least = least_peak(unlimited(problem))
        assert least <= peak.max()
        met += least == peak.max()
        if (peak <= problem.capacity).all():
            assert all(need.fits for need in needs(problem))
            assert least_peak(problem) <= peak.max()
            tight += least_peak(problem) > least
            fitting += 1
    assert fitting > met > tight > 0


@pytest.mark.parametrize("chunk", range(4))
def test_no_plan_of_a_tiny_problem_holds_less(chunk: int) -> None:
    """Under all rules, with devices that most often hold a part of all bytes."""
    comparisons = met = 0
    for seed in range(chunk, 160, 4):
        sample = small_problem(seed)
        for rules in RULES.values():
            problem = Problem(sample.graph, sample.cluster, "memory", rules)
            if problem.n <= 5 and (best := best_values(problem)) is not None:
                assert least_peak(problem) <= best["memory"], (seed, rules.name)
                fits = all(need.fits for need in needs(problem))
                assert fits or best["memory"] == np.inf, (seed, rules.name)
                met += least_peak(problem) == best["memory"]
                comparisons += 1
    assert comparisons > met > 10


def test_devices_that_cannot_hold_a_share_are_full() -> None:
    """The small device holds 4 bytes, the other the 36 that are left."""
    cluster = devices(1, 1)
    small = dataclasses.replace(
        cluster, devices=(structs.replace(cluster.devices[0], memory=4), cluster.devices[1])
    )
    assert least_peak(Problem(apart(10, persistent=4), small, "memory")) == 36


def test_what_is_live_together_is_shared() -> None:
    """The last op reads 11 tensors of 7 bytes; the last that makes one of them reads another."""
    problem = Problem(fork(13, size=7), devices(1), "memory")
    least = {need.name: need.bytes for need in needs(problem)}
    assert (least["live tensors"], least["best order"]) == (77, 84)
    assert least_peak(problem) == 84


def test_ops_that_only_some_devices_may_run_share_those() -> None:
    """Six ops of 10 bytes run on the two devices x1 alone, and not on the eight devices x2."""
    small = apart(6, persistent=10)
    ops = tuple(structs.replace(op, seconds={"x1": 1.0}) for op in small.ops)
    problem = Problem(dataclasses.replace(small, ops=ops), devices(1, 1, *[2] * 8), "memory")
    assert least_peak(problem) == 30


def test_a_group_holds_on_its_device_what_its_ops_hand_one_another() -> None:
    """Ten tensors of 7 bytes on their way from ten ops to the last, of one group all."""
    edges = [(j, 10) for j in range(10)]
    problem = Problem(graph(11, edges, size=7, group="g"), devices(1, 1, 1), "memory")
    assert least_peak(problem) == 70


@pytest.mark.parametrize(
    ("size", "room", "peak", "fits"),
    [
        (12, (5, 5, 5), 4, True),
        (13, (5, 5, 5), 5, True),
        (12, (2, 5, 5), 5, True),
        (12, (2, 2, 9), 8, True),
        (13, (2, 2, 9), 9, True),
        (14, (2, 2, 9), 5, False),
        (2**62, (2**62, 2**62), 2**61, True),
        (0, (7,), 0, True),
    ],
)
def test_a_need_is_shared_as_far_as_devices_have_room(
    size: int, room: tuple[int, ...], peak: int, fits: bool
) -> None:
    need = Need("live tensors", size, room)
    assert (need.peak, need.fits) == (peak, fits)


@pytest.mark.parametrize("rules", ["situate", "regal", "dnn-partitioning"])
def test_a_need_names_the_devices_that_have_to_meet_it(rules: str) -> None:
    small = apart(4, persistent=10, seconds=1.0)
    ops = tuple(structs.replace(op, device="d1") for op in small.ops)
    problem = Problem(
        dataclasses.replace(small, ops=ops), devices(1, 1, memory=30), "memory", rules
    )  # type: ignore[arg-type]
    unmet = [need for need in needs(problem) if not need.fits]
    assert {(need.bytes, need.room, need.devices) for need in unmet} == {(40, (30,), (1,))}


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_no_time_makes_no_bound_larger(seed: int) -> None:
    problem = random_problem(seed)
    hurried = needs(problem, until=0.0)
    assert all(few.bytes <= all_.bytes for few, all_ in zip(hurried, needs(problem), strict=False))


# The bytes that a tree needs at once.
def test_a_tree_on_one_device_is_certified() -> None:
    """Whatever has ended, no more than eleven bytes are certain."""
    problem = on(two_parts(), 1)
    bound = tightest_bound(problem)
    assert (bound.value, bound.name) == (12, "tree")
    assert solve(problem, evaluations=50).optimal


def test_a_large_tree_is_solved_by_its_order() -> None:
    result = solve(on(tree(300, 1), 1), evaluations=50)
    assert result.optimal


@pytest.mark.parametrize("seed", range(60))
def test_devices_hold_no_less_of_a_tree_between_them(seed: int) -> None:
    assert_devices_hold_no_less(bytes_of_tree, tree(4, seed), seed, brief=0.2 * (seed % 2))


def test_a_tree_with_ops_of_no_time_has_no_bound() -> None:
    assert_brief_ops_are_not_counted(bytes_of_tree)


def test_what_is_no_tree_or_has_no_time_is_not_looked_at() -> None:
    assert bytes_of_tree(on(fork(5), 1)) == 0
    assert bytes_of_tree(on(chain(5, size=3), 1)) == 6
    assert bytes_of_tree(on(chain(5, size=3), 1), until=-math.inf) == 0


# The bytes that few ops need at once in their best order.
def test_what_is_no_tree_is_certified_on_one_device() -> None:
    """One op more waits for the first; no more than eleven bytes are live whatever has ended."""
    problem = on(dataclasses.replace(two_parts(), control=((0, 6),)), 1)
    bound = tightest_bound(problem)
    assert bytes_of_tree(problem) == 0
    assert (bound.value, bound.name) == (12, "best order")
    assert solve(problem, evaluations=50).optimal


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_least_of_all_orders(seed: int) -> None:
    problem = on(layered(3, 2, seed, workspace=seed % 4), 1, ("situate", "regal")[seed % 2])
    assert bytes_of_best_order(problem) + problem.persistent.sum() == optimum(problem)


@pytest.mark.parametrize("seed", range(20))
def test_it_is_that_of_a_tree(seed: int) -> None:
    problem = on(tree(40, seed), 1)
    assert bytes_of_best_order(problem) in (0, bytes_of_tree(problem))


@pytest.mark.parametrize("seed", range(20))
def test_devices_hold_no_less_of_a_best_order_between_them(seed: int) -> None:
    assert_devices_hold_no_less(bytes_of_best_order, layered(2, 2, seed), seed, brief=0.0)


def test_an_order_with_ops_of_no_time_has_no_bound() -> None:
    assert_brief_ops_are_not_counted(bytes_of_best_order)


def test_many_ops_or_no_time_are_not_looked_at() -> None:
    assert bytes_of_best_order(on(chain(64, size=3), 1)) == 6
    assert bytes_of_best_order(on(chain(65, size=3), 1)) == 0
    assert bytes_of_best_order(on(chain(5, size=3), 1), until=-math.inf) == 0
