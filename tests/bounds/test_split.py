"""Transfers that any split of the work must pay for."""

from __future__ import annotations

import dataclasses
import itertools
import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from situate.bounds.lower_bound import tightest_bound
from situate.bounds.split import least_split, least_transfers, minimise
from situate.data.arrays import Floats
from situate.data.cluster import Cluster, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Objective, Problem
from situate.data.rules import RULES
from tests.oracle.problems import random_problem
from tests.solvers.exhaustive import best_values
from tests.solvers.families import apart, chain, devices, layered


def complete(n: int, size: int = 1, **op: Any) -> Graph:
    """Every two ops of a second have a tensor between them."""
    pairs = enumerate(itertools.combinations(range(n), 2))
    tensors = tuple(Tensor(f"t{i}", before, size, (after,)) for i, (before, after) in pairs)
    return dataclasses.replace(apart(n, **op), tensors=tensors)


def blocking(small: Graph, d: int = 2, **changes: float) -> Problem:
    return Problem(small, devices(*[1] * d, **changes), rules=RULES["regal"])


def test_half_of_a_complete_graph_sends_to_the_other_half() -> None:
    """Eight ops: four on each of two devices, and 16 transfers that occupy both, a hundredth of a
    second each."""
    bound = least_split(blocking(complete(8), bandwidth=100.0))
    assert 4.12 < bound <= 4.16


def test_four_parts_send_to_one_another() -> None:
    """Two ops on each of four devices, and 24 transfers, each of which occupies two."""
    bound = least_split(blocking(complete(8), 4, bandwidth=100.0))
    assert 2.09 < bound <= 2.12


def test_what_falls_into_parts_sends_nothing() -> None:
    """Ops of one unit, and two units that share nothing."""
    assert least_split(blocking(complete(8, group="g"))) == 0
    assert least_split(blocking(apart(8))) == 0


def test_a_chain_is_cut_once() -> None:
    assert 5 <= least_split(blocking(chain(10))) <= 6


def test_only_blocking_transfers_of_some_size_occupy_devices() -> None:
    small = complete(8)
    assert least_split(Problem(small, devices(1, 1))) == 0
    assert least_split(blocking(small, bandwidth=np.inf)) == 0
    assert least_split(blocking(small, 1)) == 0


def test_too_many_units_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situate.bounds.split.UNITS", 7)
    assert least_split(blocking(complete(8))) == 0


def test_an_ascent_that_is_ended_gives_a_smaller_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock takes a second."""
    problem = blocking(layered(5, 4, 1), bandwidth=2.0)
    share = problem.fastest.sum() / 2
    assert least_split(problem, until=0.0) == 0
    looks = itertools.count()
    monkeypatch.setattr("time.perf_counter", lambda: next(looks))
    assert share - 1e-9 <= least_split(problem, until=2.5) < least_split(problem)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e290])
def test_it_scales_with_all_times(scale: float) -> None:
    """Times near the smallest and the largest that there are."""
    small = layered(5, 4, 1)
    ops = tuple(
        structs.replace(op, seconds={"x1": scale * (op.seconds or {})["x1"]}) for op in small.ops
    )
    scaled = dataclasses.replace(small, ops=ops)
    by_one = least_split(blocking(small, bandwidth=2.0))
    assert least_split(blocking(scaled, bandwidth=2.0 / scale)) == pytest.approx(by_one * scale)


def test_work_without_seconds_goes_to_one_device() -> None:
    assert least_split(blocking(complete(8, seconds=0.0))) == 0


@pytest.mark.parametrize("objective", ["time", "throughput"])
def test_it_is_the_active_bound_where_transfers_matter(objective: Objective) -> None:
    pairs = enumerate(product(range(6), range(6, 12)))
    tensors = tuple(Tensor(f"t{i}", before, 1, (after,)) for i, (before, after) in pairs)
    halves = dataclasses.replace(apart(12), tensors=tensors)
    problem = dataclasses.replace(blocking(halves, bandwidth=30.0), objective=objective)
    assert tightest_bound(problem).name == "split"


@pytest.mark.parametrize(("seed", "d"), [(seed, 2 + seed // 2 % 2) for seed in range(32)])
def test_no_split_works_and_transfers_less(seed: int, d: int) -> None:
    """Against the busiest device of every placement of three to nine ops."""
    small = layered(4 - d + seed % 2, 3, seed, size=1 + seed % 4)
    problem = blocking(small, d, bandwidth=4.0)
    placements = np.array(list(product(range(d), repeat=problem.n)))
    busiest = min(busy(problem, placement) for placement in placements)
    assert least_split(problem) <= busiest * (1 + 1e-12)


def busy(problem: Problem, placement: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
    """Seconds of the busiest device, each transfer on its sender and its receiver."""
    seconds = np.bincount(placement, problem.fastest, minlength=problem.d)
    for tensor, producer in enumerate(problem.producer.tolist()):
        first, last = problem.consumer_start[tensor : tensor + 2]
        home = int(placement[producer])
        for there in {int(placement[reader]) for reader in problem.consumers[first:last]} - {home}:
            seconds[[home, there]] += problem.transfer_time(tensor, home, there)
    return float(seconds.max())


@pytest.mark.parametrize("chunk", range(2))
def test_no_plan_of_a_tiny_problem_is_faster(chunk: int) -> None:
    comparisons = 0
    for seed in range(chunk, 400, 2):
        sample = random_problem(seed)
        problem = Problem(sample.graph, sample.cluster, rules=RULES["regal"])
        if problem.n > 5 or problem.d > 3 or (best := best_values(problem)) is None:
            continue
        least = least_split(problem)
        assert least <= best["time"] * (1 + 1e-12), seed
        assert least <= best["throughput"] * (1 + 1e-12), seed
        comparisons += least > 0
    assert comparisons >= 5


# The least that transfers take.
def test_of_links_with_early_starts_and_fast_ones_the_better_is_taken_for_each_tensor() -> None:
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(3))
    tensors = (Tensor("small", 0, 1, (1,)), Tensor("large", 0, 100, (1,)))
    links = (
        Link("*", "*", 1.0, latency=9.0),
        Link("d0", "d1", 10.0, latency=5.0),
        Link("d1", "d2", 2.0, latency=1.0),
    )
    problem = Problem(Graph("g", ops, tensors), Cluster("c", devices(1, 1, 1).devices, links))
    assert least_transfers(problem).tolist() == [1.5, 15.0]


def test_a_tensor_goes_over_the_fastest_link_unless_it_says_what_it_takes() -> None:
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(3))
    tensors = (Tensor("t", 0, 10, (1,)), Tensor("own", 0, 10, (1,), seconds=7.0))
    machine = devices(1, 1, 1).devices
    links = (Link("*", "*", 1.0), Link("d0", "d1", 5.0, latency=0.5))
    problem = Problem(Graph("g", ops, tensors, control=((1, 2),)), Cluster("c", machine, links))
    assert least_transfers(problem).tolist() == [2.5, 7.0, 0.0]


# Minima of smooth functions.
def quadratic(point: Floats) -> tuple[float, Floats]:
    """A narrow valley with its lowest point at (1, 2)."""
    along = np.array([1.0, 100.0]) * (point - np.array([1.0, 2.0]))
    return float(along @ along) / 2, np.array([1.0, 100.0]) * along


def test_the_lowest_point_of_a_valley() -> None:
    assert minimise(quadratic, np.zeros(2), 1.0, 60) == pytest.approx([1, 2], abs=1e-4)


def test_more_steps_are_no_worse() -> None:
    values = [quadratic(minimise(quadratic, np.zeros(2), 0.1, steps))[0] for steps in range(12)]
    assert values == sorted(values, reverse=True)
    assert values[0] == quadratic(np.zeros(2))[0]


def test_where_no_step_is_better_it_stays() -> None:
    """A function that ends: every other point is infinite."""
    start = np.array([3.0, 4.0])

    def ended(point: Floats) -> tuple[float, Floats]:
        return (5.0 if (point == start).all() else math.inf), np.ones(2)

    assert (minimise(ended, start, 1.0, 10) == start).all()


def test_a_gradient_of_zero_stays() -> None:
    assert (minimise(quadratic, np.array([1.0, 2.0]), 1.0, 5) == [1, 2]).all()
