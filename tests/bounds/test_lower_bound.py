"""No feasible plan is below the bound: against all plans of tiny problems, and by hand."""

from __future__ import annotations

import dataclasses
import time

import pytest

from situate.bounds.lower_bound import bound_in_time, bound_name, lower_bound, tightest_bound
from situate.data.core_problem import core_problem
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Objective, Problem
from situate.data.rules import RULES
from situate.solvers import solve
from tests.bounds.test_paths import sums
from tests.oracle.problems import random_problem
from tests.solvers.exhaustive import best_values
from tests.solvers.families import OBJECTIVES, apart, chain, devices, fork, graph

SEEDS = 480
CHUNKS = 8


# A bound of a file is found again by its value.
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_bound_is_named_by_its_value(objective: Objective) -> None:
    problem = dataclasses.replace(random_problem(7), objective=objective)
    bound = tightest_bound(problem)
    # Of equal bounds, the first.
    assert bound_name(problem, bound.value, until=float("inf")) == bound.name
    assert bound_name(problem, bound.value * 1.001 + 1, until=float("inf")) is None


# The bound is below every plan, which exhaustive search shows.
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_plan_of_a_tiny_problem_is_below_the_bound(chunk: int) -> None:
    comparisons = 0
    for seed in range(chunk, SEEDS, CHUNKS):
        sample = random_problem(seed)
        if sample.n > 5 or sample.d > 3:
            continue
        for rules in (sample.rules, *RULES.values()):
            problem = Problem(sample.graph, sample.cluster, rules=rules)
            if (best := best_values(problem)) is None:
                continue
            for objective in OBJECTIVES:
                bound = lower_bound(dataclasses.replace(problem, objective=objective))
                assert bound <= best[objective], (seed, rules.name, objective)
                comparisons += 1
    assert comparisons >= 60


def test_a_chain_is_its_own_bound() -> None:
    problem = Problem(chain(5, seconds=0.3), devices(1, 2))
    assert lower_bound(problem) == pytest.approx(1.5)


def test_the_middle_of_the_step_is_shared() -> None:
    """A second before and after ten that two devices share: path and load see three and six."""
    assert lower_bound(Problem(fork(12), devices(1, 1))) == pytest.approx(7)


def test_times_of_a_few_bits_are_bounded_too() -> None:
    brief = Problem(apart(100, seconds=1.5e-323), devices(1, 1))
    assert lower_bound(brief) <= solve(brief, "heft").value


# Single bounds that decide.
@pytest.mark.parametrize("objective", ["time", "throughput"])
def test_a_group_is_not_spread(objective: Objective) -> None:
    assert lower_bound(Problem(apart(4, group="g"), devices(1, 1), objective)) == 4


def test_where_all_times_are_whole_the_bound_is_rounded_up() -> None:
    assert lower_bound(Problem(apart(5), devices(1, 1))) == 3
    assert lower_bound(Problem(apart(5, seconds=0.5), devices(1, 1))) == pytest.approx(1.25)


def test_the_longest_op_bounds_the_period() -> None:
    problem = Problem(apart(2, seconds=[5.0, 1.0]), devices(1, 1), "throughput")
    assert lower_bound(problem) == 5


def test_calls_do_not_share_the_work_of_a_cpu() -> None:
    """A CPU runs any number of ops at once, so only the critical path bounds the time."""
    cluster = devices(1)
    cpu = dataclasses.replace(cluster, devices=(type(cluster.devices[0])("c", kind="cpu"),))
    assert lower_bound(Problem(apart(5), cpu, "time", RULES["dnn-partitioning"])) == 1


def test_no_seconds_bound_nothing() -> None:
    assert lower_bound(Problem(fork(5, seconds=0.0), devices(1, 1))) == 0


@pytest.mark.parametrize("rules", ["situate", "regal"])
def test_an_op_too_short_to_move_the_clock_holds_nothing(rules: str) -> None:
    """One second and 1e-17 more are one second: the workspace of the second op is never held."""
    ops = (Op("a", seconds={"*": 1.0}), Op("b", seconds={"*": 1e-17}, workspace=1000))
    brief = Problem(Graph("g", ops, (Tensor("t", 0, 10, (1,)),)), devices(1), "memory", rules)  # type: ignore[arg-type]
    result = solve(brief, "topological")
    result.schedule.verify(brief)
    assert result.value >= result.lower_bound


def test_a_short_op_that_moves_the_clock_holds_what_it_needs() -> None:
    ops = (Op("a", seconds={"*": 1.0}), Op("b", seconds={"*": 1e-15}, workspace=1000))
    brief = Problem(Graph("g", ops, (Tensor("t", 0, 10, (1,)),)), devices(1), "memory")
    assert lower_bound(brief) == solve(brief, "topological").value == 1010


# Rounding, names of bounds and time limits.
@pytest.mark.parametrize("objective", ["time", "throughput"])
def test_rounding_in_a_long_sum_stays_above_the_bound(objective: str) -> None:
    """Each of 20,000 additions to one second loses nearly half of the last digit."""
    brief = 1.49 * 2.0**-52
    ops = apart(20_001, seconds=[1.0] + [brief] * 20_000)
    long = Problem(ops, devices(1), objective)  # type: ignore[arg-type]
    result = solve(long, "topological")
    assert result.lower_bound <= result.value < 1 + 20_000 * brief * (1 - 1e-2)
    assert result.optimal


@pytest.mark.parametrize(
    ("small", "objective", "name"),
    [
        (chain(5), "time", "critical path"),
        (apart(6), "time", "load"),
        (fork(12), "time", "window"),
        (apart(6, device="d0"), "time", "narrow work"),
        (apart(6, group="g"), "time", "colocation group"),
        (fork(12, size=100), "time", "together"),
        (apart(6), "throughput", "load"),
        (apart(6, group="g"), "throughput", "colocation group"),
        (apart(3, seconds=[9.0, 1.0, 1.0]), "throughput", "longest op"),
        (apart(6, device="d0"), "throughput", "narrow work"),
        (apart(6, persistent=4), "memory", "persistent bytes"),
        (chain(5, size=4, workspace=2), "memory", "one op"),
        (graph(4, [(0, 1), (1, 2), (2, 3), (0, 3)], device="d0"), "memory", "live tensors"),
    ],
)
def test_the_bound_that_is_active_is_named(small: Graph, objective: Objective, name: str) -> None:
    bound = tightest_bound(Problem(small, devices(1, 1), objective))
    assert bound.name == name
    assert bound.value == lower_bound(Problem(small, devices(1, 1), objective)) > 0


def test_a_bound_on_memory_that_has_no_time_is_valid_all_the_same() -> None:
    problem = Problem(graph(4, [(0, 1), (1, 2), (2, 3), (0, 3)]), devices(1), "memory")
    assert 0 < lower_bound(problem, until=0.0) <= lower_bound(problem)


def test_the_clock_decides_on_no_bound_without_a_time_limit() -> None:
    """Results meet, which only a search of half a second or more looks at."""
    problem = Problem(sums(size=100), devices(*[1] * 8))
    assert bound_in_time(problem, begin=-1e9, time_limit=None) == tightest_bound(problem)
    begin = time.perf_counter()
    assert bound_in_time(problem, begin, 600.0) == tightest_bound(problem)
    core = core_problem(problem)
    assert bound_in_time(problem, begin, 600.0, core) == tightest_bound(problem)
    assert bound_in_time(problem, begin, 0.4).value < tightest_bound(problem).value
