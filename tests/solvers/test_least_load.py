"""What the busiest device must work, and at which prices."""

from __future__ import annotations

import dataclasses

import pytest

from situate.cluster import Cluster, Device, Link
from situate.graph import Graph, Op
from situate.problem import Problem
from situate.solvers.least_load import least_load
from tests.solvers.families import apart, devices


def test_work_spreads_over_unequal_devices_by_their_speed() -> None:
    problem = Problem(apart(30), devices(1, 2))
    assert least_load(problem).seconds == pytest.approx(20, rel=1e-2)
    assert least_load(problem).seconds <= 20


def test_memory_forces_work_onto_the_slow_device() -> None:
    """Six ops of 4 bytes, of which 3 fit on the fast device: 3 take 6 seconds on the slow one."""
    roomy = devices(1, 2)
    fast, slow = roomy.devices
    cluster = dataclasses.replace(roomy, devices=(type(fast)("d0", "x1", memory=12), slow))
    roomy_bound = least_load(Problem(apart(6, persistent=4), roomy)).seconds
    assert roomy_bound < least_load(Problem(apart(6, persistent=4), cluster)).seconds <= 6


def test_times_near_the_longest_overflow_in_silence() -> None:
    """Their memory has no price that a number can hold; what is a bound stays one."""
    ops = tuple(Op(f"op{i}", seconds={"*": 1e297}, persistent=2**53) for i in range(9))
    machine = (Device("full", memory=2**53), Device("cpu", kind="cpu"), Device("roomy"))
    cluster = Cluster("c", machine, (Link("*", "*", 1e9),))
    assert 0 <= least_load(Problem(Graph("g", ops), cluster)).seconds <= 9e297


def test_weights_are_of_sum_one_and_larger_where_it_is_fast() -> None:
    load = least_load(Problem(apart(30), devices(1, 2)))
    assert load.weight.sum() == pytest.approx(1)
    assert load.weight[0] > load.weight[1]


def test_where_memory_is_no_limit_a_byte_costs_nothing() -> None:
    assert least_load(Problem(apart(30), devices(1, 2))).price.tolist() == [0, 0]
