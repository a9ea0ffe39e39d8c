"""`auto`: never worse than a rule, the same at any number of threads, and honest in the core."""

from __future__ import annotations

import dataclasses
import math
import signal
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.grouping import heavy_edge
from situate.results.result import Progress, Result
from situate.simulation.simulator import Simulator
from situate.solvers import solve
from situate.solvers.auto.improve import moves
from situate.solvers.auto.improve.cooling import INTERVALS
from tests.oracle.problems import random_problem
from tests.solvers import families
from tests.solvers.exhaustive import best_values, optimum
from tests.solvers.families import OBJECTIVES, apart, chain, devices, fork, layered

LIST_RULES = ("single", "topological", "heft", "etf")


def _auto(problem: Problem, evaluations: int = 2000, **changes: Any) -> Result:
    return solve(problem, time_limit=None, evaluations=evaluations, **changes)


def _score(result: Result) -> tuple[int, float]:
    return int(result.schedule.overflow(result.problem).sum()), result.value


@pytest.mark.parametrize("seed", range(12))
def test_it_is_never_worse_than_a_list_rule(seed: int) -> None:
    """Rules and objectives take turns, so that each pair has four graphs."""
    drawn = random_problem(seed)
    for number, rules in enumerate((drawn.rules, *RULES.values())):
        objective = OBJECTIVES[(seed + number) % 3]
        problem = Problem(drawn.graph, drawn.cluster, objective, rules)
        best = min(_score(solve(problem, rule)) for rule in LIST_RULES)
        assert _score(_auto(problem, 200)) <= best, (rules.name, objective)


@pytest.mark.parametrize("rules", families.RULES)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("family", ["bus", "tight", "blocking"])
def test_the_seed_alone_decides(family: str, objective: str, rules: str) -> None:
    problem = families.problem(family, objective, rules)
    first, other = (_auto(problem, 800, seed=5, threads=threads) for threads in (1, 3))
    assert np.array_equal(first.placement, other.placement)
    assert np.array_equal(first.order, other.order)
    assert (first.value, first.evaluations) == (other.value, other.evaluations)


def test_another_seed_searches_elsewhere() -> None:
    orders = {tuple(_auto(families.problem("bus"), 800, seed=seed).order) for seed in range(4)}
    assert len(orders) > 1


def test_it_improves_on_the_rules_by_a_margin() -> None:
    problem = Problem(layered(10, 8, 1, size=4), devices(1, 1, 2, latency=0.5))
    best = min(solve(problem, rule).value for rule in LIST_RULES)
    assert _auto(problem, 10_000).value < 0.85 * best


@pytest.mark.parametrize("seed", range(400))
def test_it_finds_the_optimum_of_tiny_problems(seed: int) -> None:
    """The best of every plan there is, as `exhaustive` finds them."""
    drawn = random_problem(seed)
    for objective in OBJECTIVES if drawn.n <= 4 and drawn.d <= 3 else ():
        problem = dataclasses.replace(drawn, objective=objective)
        best, result = optimum(problem), _auto(problem, 3000)
        assert result.feasible == math.isfinite(best)
        if result.feasible:
            assert result.value == pytest.approx(best, rel=1e-12), objective


@pytest.mark.parametrize("chunk", range(4))
def test_it_finds_the_shortest_period_of_tiny_problems(chunk: int) -> None:
    """Where persistent bytes are all that counts; live tensors it does not foresee."""
    for seed in range(chunk, 240, 4):
        drawn = random_problem(seed)
        if drawn.n > 5 or drawn.d > 3:
            continue
        problem = Problem(drawn.graph, drawn.cluster, "throughput", RULES["dnn-partitioning"])
        best = best_values(problem)
        result = _auto(problem, 5000)
        if best and result.feasible:
            assert result.value == pytest.approx(best["throughput"], rel=1e-9), seed


@pytest.mark.parametrize("seed", [12, 91, 104, 112, 131, 149])
def test_the_period_under_live_tensors_is_at_most_that_of_the_shortest_step(seed: int) -> None:
    """Where only some orders fit: the same placement fits in the order of the plan for time."""
    drawn = random_problem(seed)
    step = _auto(drawn, 6000)
    period = step.schedule.period(drawn)
    steady = _auto(dataclasses.replace(drawn, objective="throughput"), 6000)
    assert step.feasible
    assert steady.feasible
    assert steady.value <= 1.1 * period


def test_memory_is_kept_where_no_device_holds_everything() -> None:
    """The fast devices hold 4 ops of 10 bytes each, so 4 of 12 are slow."""
    fast = [Device(f"d{i}", "x1", memory=45) for i in range(2)]
    cluster = Cluster("c", (*fast, Device("d2", "x2")), (Link("*", "*", math.inf),))
    result = _auto(Problem(apart(12, persistent=10), cluster))
    assert result.feasible
    assert result.value == 8


def test_it_finds_what_fits_where_the_rules_do_not() -> None:
    """Bin packing: 9+7+4, 8+6+6 bytes fit two devices of 20 in few ways."""
    held = (9, 8, 7, 6, 6, 4)
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}, persistent=b) for j, b in enumerate(held))
    problem = Problem(Graph("g", ops), devices(1, 1, memory=20))
    for objective in OBJECTIVES:
        assert _auto(dataclasses.replace(problem, objective=objective)).feasible


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("count", [1, 2])
def test_it_finds_an_order_that_fits_under_live_tensors(objective: Any, count: int) -> None:
    """Eight branches of a big tensor each: one device holds one or two at a time, not all."""
    n = 8
    ops = [Op(f"make{j}", seconds={"*": 1.0}) for j in range(n)]
    ops += [Op(f"use{j}", seconds={"*": 1.0}) for j in range(n)]
    tensors = [Tensor(f"t{j}", j, 10, (n + j,)) for j in range(n)]
    cluster = devices(*[1] * count, memory=20)
    problem = Problem(Graph("g", tuple(ops), tuple(tensors)), cluster, objective)
    assert _auto(problem).feasible


def test_unequal_devices_are_used_by_their_speed() -> None:
    assert _auto(Problem(chain(10), devices(2, 1, 2))).devices_used == ["d1"]
    counts = np.bincount(_auto(Problem(apart(30), devices(1, 2))).placement)
    assert counts.tolist() == [20, 10]


def test_the_peak_spreads_over_the_devices() -> None:
    result = _auto(Problem(apart(8, persistent=10), devices(1, 1), "memory"))
    assert result.value == 40
    assert result.gap == 0


@pytest.mark.parametrize("seed", range(30))
def test_under_atomic_rules_the_peak_counts_too(seed: int) -> None:
    """Calls may wait for one another where the peak is all that counts."""
    drawn = random_problem(seed)
    problem = Problem(drawn.graph, drawn.cluster, "memory", "dnn-partitioning")  # type: ignore[arg-type]
    best = solve(problem, "random", time_limit=None, evaluations=200)
    assert _score(_auto(problem, 4000)) <= _score(best)


def test_a_start_that_never_ends_is_left_behind() -> None:
    """`single` puts a and c beside each other and b, which cannot be there, between them."""
    ops = tuple(
        Op(name, seconds={"d0": 1.0} if j == 1 else {"d1": 1.0, "d2": 3.0})
        for j, name in enumerate("abc")
    )
    tensors = (Tensor("p", 0, 0, (1,)), Tensor("q", 1, 0, (2,)))
    problem = Problem(Graph("g", ops, tensors), devices(1, 1, 1), "time", "dnn-partitioning")  # type: ignore[arg-type]
    result = _auto(problem)
    assert result.feasible
    assert result.value == 5


@pytest.mark.parametrize("objective", ["time", "memory"])
@pytest.mark.parametrize("rules", ["situate", "regal"])
def test_where_nothing_fits_the_shortfall_is_the_smallest_found(objective: Any, rules: Any) -> None:
    """No other method finds a smaller one, whatever the step takes."""
    small = layered(4, 4, 3, persistent=4, workspace=1)
    problem = Problem(small, devices(1, 1, 2, memory=12), objective, rules)
    short = {
        method: solve(problem, method, evaluations=20_000).schedule.excess(problem)
        for method in ("auto", "brkga", "local_search")
    }
    assert short["auto"] == min(short.values()) > 0


@pytest.mark.parametrize("seed", [75, 168, 210])
def test_calls_that_wait_for_one_another_are_not_short_of_memory(seed: int) -> None:
    """They fit and have no end: annealing for bytes would change nothing."""
    drawn = random_problem(seed)
    atomic = Problem(drawn.graph, drawn.cluster, "time", RULES["dnn-partitioning"])
    assert _auto(atomic, 600).feasible


@pytest.mark.parametrize("scale", [2.0**-20, 2.0**20])
def test_the_unit_of_time_does_not_matter_for_memory(scale: float) -> None:
    """Nor where transfers block, of whose seconds annealing for time takes its temperature."""
    slow = layered(12, 8, 3, size=3)
    ops = tuple(
        structs.replace(op, seconds={k: v * scale for k, v in op.seconds.items()})
        for op in slow.ops
    )
    result = [
        _auto(Problem(dataclasses.replace(slow, ops=of), devices(1, 1), "memory", "regal"), 5_000)
        for of in (slow.ops, ops)
    ]
    assert result[0].value == result[1].value


def test_a_tree_that_is_listed_level_by_level_runs_in_the_least_memory() -> None:
    leaves = 16
    ops = tuple(Op(f"op{j}", seconds={"x1": 1.0}) for j in range(2 * leaves - 1))
    parents = [(j + 2 * leaves) // 2 for j in range(2 * leaves - 2)]
    tensors = tuple(Tensor(f"t{j}", j, 1, (parent,)) for j, parent in enumerate(parents))
    result = solve(Problem(Graph("tree", ops, tensors), devices(1), "memory"), evaluations=20)
    assert result.value == math.log2(leaves) + 2


@pytest.mark.parametrize("objective", ["memory", "throughput"])
def test_ctrl_c_is_heard_in_the_middle_of_a_slice(objective: str) -> None:
    """A second of the processor's after the beginning, when the rules have long been run."""
    problem = families.problem("bus", objective)
    heard = signal.signal(signal.SIGPROF, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_PROF, 1.0)
        result = _auto(problem, 2 * INTERVALS * 10**7)
    finally:
        signal.signal(signal.SIGPROF, heard)
    assert result.evaluations < 2 * 10**7
    assert _score(result) <= _score(_auto(problem, 100))


def test_what_is_wide_or_long_or_apart_is_no_trouble() -> None:
    for graph in (fork(3000, seconds=0.01), chain(3000, seconds=0.01), apart(3000, seconds=0.01)):
        for objective in OBJECTIVES:
            problem = Problem(graph, devices(1, 2, 1), objective)
            result = _auto(problem, 60)
            result.schedule.verify(problem, allow_overflow=not result.feasible)


def test_all_rules_are_heard_however_short_the_time() -> None:
    """A tight fork: the list rules beat one device, which is offered first."""
    tight = families.problem("fork")
    best = min(solve(tight, rule, time_limit=10).value for rule in ("single", "heft", "etf"))
    assert solve(tight, "auto", time_limit=0).value <= best < solve(tight, "single").value


class Clock:
    """A clock that stands still except during these calls: decoding a plan 1 s, simulating
    one 0.5 s, dividing the graph 8 s, a slice of annealing 0.5 s. A slice ends with its evaluations
    and not by the core's own clock, so that no load on the machine changes the search."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        patch.setattr("time.perf_counter", lambda: self.now)
        cooling = import_module("situate.solvers.auto.improve.cooling")
        patch.setattr(cooling, "INTERVAL", math.inf)
        patch.setattr(cooling, "MOST_EVALUATIONS", 500)
        patch.setattr(Simulator, "schedule", self._taking(1.0, Simulator.schedule))
        patch.setattr(Simulator, "evaluate", self._taking(0.5, Simulator.evaluate))
        patch.setattr(heavy_edge, "partitions", self._taking(8.0, heavy_edge.partitions))
        patch.setattr(moves, "folded_order", self._taking(6.0, moves.folded_order))

    def _taking(self, seconds: float, function: Any) -> Any:
        def slow(*given: Any, **named: Any) -> Any:
            self.now += seconds
            return function(*given, **named)

        return slow

    def report(self, _: Progress) -> None:
        self.now += 0.5


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("family", ["layered", "tight"])
def test_a_time_limit_holds_however_long_a_plan_takes_to_decode(
    family: str, objective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rules are heard in any case; later parts begin only if there is time for them."""
    small = families.problem(family, objective)
    monkeypatch.setattr("situate.solvers.incumbent.gap", lambda *_: 1.0)  # nothing ends it before
    for limit in (40, 58, 130, 180):
        with monkeypatch.context() as patch:
            clock = Clock(patch)
            result = solve(small, time_limit=limit, threads=1, on_progress=clock.report)
            assert result.seconds == clock.now <= 1.05 * limit, limit
    assert clock.now > 0.8 * limit
