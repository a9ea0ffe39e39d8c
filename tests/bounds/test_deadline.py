"""Steps that are refuted by their constraints on ops."""

from __future__ import annotations

import time

import numpy as np
import pytest

from situate.bench.families import unequal
from situate.bounds import deadline, together
from situate.bounds.deadline import least_deadline
from situate.bounds.load import Load, least_load
from situate.bounds.lower_bound import tightest_bound
from situate.bounds.paths import Paths, with_joins
from situate.bounds.together import least_together
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.rules import RULES
from tests.solvers.exhaustive import best_values
from tests.solvers.families import apart, chain, devices, fork

FREE = Load(0.0, np.zeros(1), np.zeros(1))


def refuted(problem: Problem, least: float) -> float:
    return least_deadline(problem, least, least_load(problem))


def op(name: str, first: float, others: float) -> Op:
    """An op that takes so many seconds on the first of four devices, and on the others."""
    return Op(name, seconds={"d0": first, **{f"d{j}": others for j in range(1, 4)}})


def test_what_is_forced_by_one_path_prolongs_another() -> None:
    """A step of less than four seconds has no time for a or b but on the first device, for c and d
    follow them; nor has it for their sum elsewhere, which has to wait for both."""
    ops = (op("a", 1, 1.5), op("b", 1, 1.5), op("sum", 2, 4), op("c", 2.5, 2.5), op("d", 2.5, 2.5))
    small = Graph("g", ops, (Tensor("a", 0, 0, (2, 3)), Tensor("b", 1, 0, (2, 4))))
    problem = Problem(small, devices(1, 1, 1, 1))
    assert with_joins(problem, Paths.of(problem)).longest == 3.5
    assert 4 * (1 - 2 * deadline.PRECISION) <= refuted(problem, 3.5) <= 4
    assert best_values(problem)["time"] == 4


def test_what_is_known_is_not_lowered() -> None:
    problem = Problem(fork(12), devices(1, 1))
    assert refuted(problem, 7.0) == 7
    assert refuted(problem, 0.0) == 0


def test_without_edges_or_other_devices_nothing_is_forced() -> None:
    assert refuted(Problem(apart(5), devices(1, 1)), 1.0) == 1
    assert refuted(Problem(chain(5), devices(1)), 1.0) == 1


def test_a_step_is_as_long_as_what_is_found_by_other_bounds() -> None:
    """Twelve ops of a second that no transfer is worth."""
    problem = Problem(fork(12, size=100), devices(1, 1, 1, 1))
    assert 12 * (1 - 2 * deadline.PRECISION) <= refuted(problem, 3.0) <= 12


@pytest.mark.parametrize(("limit", "value"), [("EDGES", 19), ("PAIRS", 319)])
def test_too_many_edges_or_too_little_time_refute_nothing(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    problem = Problem(fork(12, size=100), devices(1, 1, 1, 1))
    assert least_deadline(problem, 3.0, FREE, until=time.perf_counter()) == 3
    monkeypatch.setattr(together, limit, value)
    assert refuted(problem, 3.0) == 3


def test_it_is_the_active_bound_where_devices_differ() -> None:
    """A hundred ops on eight devices, some of them four times as fast as others."""
    problem = unequal.instances()[11].make()
    assert tightest_bound(problem).name == "deadline"


def unlike(seed: int, rules: str) -> Problem:
    """Five ops, each with times of its own on three devices, and transfers of up to six seconds."""
    random = np.random.default_rng(seed)
    ops = tuple(
        Op(f"op{j}", seconds={f"d{e}": float(random.integers(1, 7)) for e in range(3)})
        for j in range(5)
    )
    edges = [(a, b) for b in range(5) for a in range(b) if random.random() < 0.5]
    tensors = tuple(
        Tensor(f"t{a}", a, int(random.integers(7)), tuple(b for first, b in edges if first == a))
        for a in sorted({a for a, _ in edges})
    )
    return Problem(Graph("g", ops, tensors), devices(1, 1, 1), rules=RULES[rules])


@pytest.mark.parametrize("rules", ["situate", "regal"])
def test_no_plan_of_a_tiny_problem_is_faster(rules: str) -> None:
    """From the bounds of paths, joins, load and parts, and from a third of them."""
    raised = 0
    for seed in (0, 1, 2, 38, 125):
        problem = unlike(seed, rules)
        paths = with_joins(problem, Paths.of(problem))
        bound = max(paths.longest, least_together(problem, paths), least_load(problem).seconds)
        least, from_less = refuted(problem, bound), refuted(problem, bound / 3)
        assert max(least, from_less) <= best_values(problem)["time"]
        assert from_less >= paths.longest * (1 - 2 * deadline.PRECISION)
        raised += least > bound
    assert raised == 2
