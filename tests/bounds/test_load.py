"""The work of the busiest device, and the prices that prove it."""

from __future__ import annotations

import dataclasses
import itertools
from itertools import product

import numpy as np
import pytest

from situate.bounds.load import least_load
from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from tests.solvers.families import apart, devices


# The least load by speed and memory.
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
    """Their memory has no price that a number can hold; a bound stays one."""
    ops = tuple(Op(f"op{i}", seconds={"*": 1e297}, persistent=2**53) for i in range(9))
    machine = (Device("full", memory=2**53), Device("cpu", kind="cpu"), Device("roomy"))
    cluster = Cluster("c", machine, (Link("*", "*", 1e9),))
    assert 0 <= least_load(Problem(Graph("g", ops), cluster)).seconds <= 9e297


# The dual point: its weights and prices give the bound.
def test_weights_are_of_sum_one_and_larger_where_it_is_fast() -> None:
    load = least_load(Problem(apart(30), devices(1, 2)))
    assert load.weight.sum() == pytest.approx(1)
    assert load.weight[0] > load.weight[1]


def test_where_memory_is_no_limit_a_byte_costs_nothing() -> None:
    assert least_load(Problem(apart(30), devices(1, 2))).price.tolist() == [0, 0]


@pytest.mark.parametrize("seed", range(40))
def test_no_placement_that_fits_works_its_busiest_device_less(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(2, 4)), 6
    seconds, sizes = rng.integers(1, 9, (n, d)), rng.integers(0, 9, n)
    room = max(int(sizes.max()), int(sizes.sum() * rng.uniform(1, 1.2) / d) + 1)
    fitting = (
        max(int(seconds[of == k, k].sum()) for k in range(d))
        for of in map(np.array, product(range(d), repeat=n))
        if max(sizes[of == k].sum() for k in range(d)) <= room
    )
    bound = least_load(_problem(seconds.tolist(), sizes.tolist(), [room] * d)).seconds
    assert 0 < bound <= min(fitting, default=np.inf) * (1 + 1e-12)


def _problem(seconds: list[list[float]], sizes: list[int], room: list[int]) -> Problem:
    """Ops of these seconds on each device and bytes, on devices of these capacities."""
    names = [f"d{k}" for k in range(len(seconds[0]))]
    ops = tuple(
        Op(f"op{j}", seconds=dict(zip(names, row, strict=True)), persistent=size)
        for j, (row, size) in enumerate(zip(seconds, sizes, strict=True))
    )
    machine = tuple(Device(name, memory=size) for name, size in zip(names, room, strict=True))
    return Problem(Graph("g", ops), Cluster("c", machine, (Link("*", "*", 1e9),)))


def test_a_byte_costs_something_on_the_full_device_alone() -> None:
    """The fast device holds two of six ops of 4 bytes, so four take 8 seconds on the slow one."""
    machine = devices(1, 2, memory=8).devices[0], devices(1, 2).devices[1]
    cluster = dataclasses.replace(devices(1, 2), devices=machine)
    load = least_load(Problem(apart(6, persistent=4), cluster))
    assert 6 < load.seconds <= 8
    assert load.price[0] > 0
    assert load.price[1] == 0


def test_the_bound_is_what_the_dual_gives_at_its_weights_and_prices() -> None:
    """Two of eight ops fit on the first device and as many on the second: both are full."""
    problem = _problem([[1, 2, 4]] * 8, [4] * 8, [8, 8, 100])
    load = least_load(problem)
    assert (load.price[:2] > 0).all()
    costs = load.weight * problem.unit_seconds + load.price * problem.unit_persistent[:, None]
    paid = (load.price * problem.capacity).sum()
    assert load.seconds == pytest.approx(costs.min(axis=1).sum() - paid, rel=1e-9)


def test_an_ascent_that_is_ended_gives_a_smaller_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock takes a second."""
    seconds = [[1, 2, 4], [5, 1, 2], [3, 3, 1], [2, 7, 5]] * 3
    problem = _problem(seconds, [4] * 12, [20, 20, 30])
    looks = itertools.count()
    monkeypatch.setattr("time.perf_counter", lambda: next(looks))
    end = least_load(problem, until=5.0).seconds
    # One look ends the long steps, another the short ones from their best point.
    assert next(looks) == 8
    assert 0 < end < least_load(problem).seconds


# Many different units, whose long steps are on groups of similar ones.
@pytest.mark.parametrize("capacity", [[400, 600, 700], [10000] * 3])
def test_groups_lead_to_the_bound_of_all_units(
    capacity: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    seconds = rng.uniform(1, 9, (300, 3))
    seconds[rng.random((300, 3)) < 0.1] = 50.0
    problem = _problem(seconds.tolist(), rng.integers(1, 9, 300).tolist(), capacity)
    of_all = least_load(problem).seconds
    monkeypatch.setattr("situate.bounds.load.MOST_ROWS", 100)
    assert least_load(problem).seconds == pytest.approx(of_all, rel=2e-3)


def test_groups_keep_apart_units_of_different_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the units may run on the first device only."""
    ops = tuple(
        Op(f"op{i}", seconds={"d0": 1.0 + i / 1000, "d1": 1.0}, device="d0" if i % 2 else None)
        for i in range(20)
    )
    problem = Problem(Graph("g", ops), devices(1, 1, 1))
    of_all = least_load(problem).seconds
    for name, value in (("MOST_ROWS", 2), ("GROUPS", 3)):
        monkeypatch.setattr(f"situate.bounds.load.{name}", value)
    assert least_load(problem).seconds == pytest.approx(of_all, rel=1e-2)


@pytest.mark.parametrize("memory", [100, 30, 12])
def test_devices_that_are_all_alike_share_the_work_evenly(memory: int) -> None:
    """In a hundred bytes and in thirty it fits; in twelve it does not, which has no price."""
    load = least_load(Problem(apart(15, persistent=4), devices(1, 1, memory=memory)))
    assert load.seconds == pytest.approx(7.5)
    assert load.price.tolist() == [0, 0]
