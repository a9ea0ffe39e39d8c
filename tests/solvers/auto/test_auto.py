"""`auto`: never worse than a rule, the same at any number of threads, and honest in the core."""

from __future__ import annotations

import dataclasses
import math
import signal
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from situate import _core
from situate.bench.families.regal import synthetic
from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.data.topology import pipeline_order
from situate.grouping import heavy_edge
from situate.results.result import Progress, Result
from situate.simulation.decoding import scheduled
from situate.simulation.simulator import Simulator
from situate.simulation.transfer_order import TransferOrder
from situate.solvers import solve
from situate.solvers.auto import critical
from situate.solvers.auto.blocks import Blocks
from situate.solvers.auto.cooling import INTERVALS
from tests.oracle.problems import random_decision, random_problem
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
    drawn = random_problem(seed)
    for rules in (drawn.rules, *RULES.values()):
        for objective in OBJECTIVES:
            problem = Problem(drawn.graph, drawn.cluster, objective, rules)
            best = min(_score(solve(problem, rule)) for rule in LIST_RULES)
            assert _score(_auto(problem, 200)) <= best, (rules.name, objective)


@pytest.mark.parametrize("rules", families.RULES)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("family", ["bus", "tight", "blocking"])
def test_the_seed_alone_decides(family: str, objective: str, rules: str) -> None:
    problem = families.problem(family, objective, rules)
    results = [_auto(problem, 800, seed=5, threads=threads) for threads in (1, 2, 3)]
    first = results[0]
    for other in results[1:]:
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


@pytest.mark.parametrize("goal", ["time", "memory", "shortfall"])
@pytest.mark.parametrize("chunk", range(6))
def test_the_core_knows_the_cost_of_its_best_plan(chunk: int, goal: str) -> None:
    """Over moves, refusals, restarts and cuts: by a serial decoding from scratch, to the last bit.

    Exact where transfers are blocking, or every pair has its channel and every op takes time.
    """
    for seed in range(chunk, 90, 6):
        problem = _exact(random_problem(seed), seed)
        first, second = random_decision(problem, seed), random_decision(problem, seed + 1)
        order = np.array(problem.graph.order, np.int32)
        core = Simulator(problem).core
        annealers = _core.search.make_annealers(core, goal, seed, 1, first.placement, order)
        annealers.move_blocks(*_halves(problem), 3)
        annealers.typical_change(50)
        for temperature in (100.0, 1.0, 0.1, 0.0):
            annealers.run(temperature, 200, math.inf, 1)
            _check_cost(problem, goal, *annealers.best(0))
            annealers.restart(0, second.placement, order)
            _check_cost(problem, goal, *annealers.best(0))


def test_the_core_tells_what_empties_another_device_than_the_fullest() -> None:
    large = Op("large", seconds={"x2": 1.0}, persistent=10**6)
    small = [Op(f"op{j}", seconds={"x1": 1.0}) for j in range(8)]
    tensors = tuple(Tensor(f"t{j}", j, 10, (j + 1,)) for j in range(7))
    problem = Problem(Graph("two sizes", (*small, large), tensors), devices(1, 1, 2), "memory")
    placement = np.array([0] * 8 + [2], np.int32)
    order, core = np.arange(9, dtype=np.int32), Simulator(problem).core
    annealers = _core.search.make_annealers(core, "memory", 0, 1, placement, order)
    assert annealers.typical_change(50) > 0
    assert annealers.best(0)[1] == 10**6


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
    found = [
        _auto(Problem(dataclasses.replace(slow, ops=of), devices(1, 1), "memory", "regal"), 5_000)
        for of in (slow.ops, ops)
    ]
    assert found[0].value == found[1].value


def test_a_tree_that_is_listed_level_by_level_runs_in_the_least_memory() -> None:
    leaves = 16
    ops = tuple(Op(f"op{j}", seconds={"x1": 1.0}) for j in range(2 * leaves - 1))
    parents = [(j + 2 * leaves) // 2 for j in range(2 * leaves - 2)]
    tensors = tuple(Tensor(f"t{j}", j, 1, (parent,)) for j, parent in enumerate(parents))
    result = solve(Problem(Graph("tree", ops, tensors), devices(1), "memory"), evaluations=20)
    assert result.value == math.log2(leaves) + 2


@pytest.mark.parametrize("seed", range(5))
def test_a_chain_goes_on_from_a_plan_whose_transfers_are_early(seed: int) -> None:
    problem = Problem(synthetic("er", 60, seed, bandwidth=1.0), Cluster.identical(2))
    core, order = Simulator(problem).core, np.array(problem.graph.order, np.int32)
    placement = np.arange(problem.n, dtype=np.int32) % 2
    annealers = _core.search.make_annealers(core, "time", seed, 1, placement, order)
    annealers.run(100.0, 3000, math.inf, 1)
    _, cost, found, by, sent = annealers.best(0)
    assert len(sent[0])
    _check_cost(problem, "time", *annealers.best(0))
    other = _core.search.make_annealers(core, "time", seed, 1, placement, order)
    assert other.best(0)[1] > cost
    other.restart(0, found, by, sent)
    assert other.best(0)[1] == cost


LINKS = 1000


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("away", [False, True])
def test_annealing_looks_where_the_step_is_held_up(away: bool, seed: int) -> None:
    """One op of a thousand is where it should not be: on the device that a chain keeps busy, or
    away from the rest of the chain."""
    graph = chain(LINKS)
    beside = Op("beside", seconds={"x1": 1.0})
    graph = graph if away else Graph("beside", (*graph.ops, beside), graph.tensors)
    problem = Problem(graph, devices(1, 1))
    placement, order = np.zeros(problem.n, np.int32), np.arange(problem.n, dtype=np.int32)
    placement[LINKS // 2] = away
    order = np.insert(order[:LINKS], LINKS // 2, order[LINKS:]).astype(np.int32)
    annealers = _core.search.make_annealers(
        Simulator(problem).core, "time", seed, 1, placement, order
    )
    annealers.run(0.0, 100, math.inf, 1)
    assert annealers.best(0)[1] == LINKS


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("goal", "room"), [("memory", 1000), ("shortfall", 50)])
@pytest.mark.parametrize("rules", ["situate", "regal"])
def test_annealing_looks_where_memory_is_fullest(
    rules: Any, goal: str, room: int, seed: int
) -> None:
    """Two large tensors amid a thousand small ones are there together and need not be."""
    small, first = chain(LINKS), LINKS
    large = [Op(name, seconds={"x1": 1.0}) for name in ("make a", "make b", "use b", "use a")]
    tensors = (Tensor("a", first, 100, (first + 3,)), Tensor("b", first + 1, 100, (first + 2,)))
    graph = Graph("two at once", (*small.ops, *large), (*small.tensors, *tensors))
    problem = Problem(graph, devices(1, memory=room), "memory", rules)
    order = np.insert(np.arange(LINKS), LINKS // 2, first + np.arange(4)).astype(np.int32)
    placement = np.zeros(problem.n, np.int32)
    annealers = _core.search.make_annealers(
        Simulator(problem).core, goal, seed, 1, placement, order
    )
    annealers.run(0.0, 100, math.inf, 1)
    assert annealers.best(0)[1] < 200 - room * (goal == "shortfall")


def test_the_core_refuses_transfers_that_do_not_exist() -> None:
    problem = random_problem(1)
    core, order = Simulator(problem).core, np.array(problem.graph.order, np.int32)
    placement = random_decision(problem, 1).placement
    annealers = _core.search.make_annealers(core, "time", 0, 1, placement, order)
    none, one = np.zeros(0, np.int32), np.zeros(1, np.int32)
    for sent in (one, one, none), (one + len(problem.size), one, one), (one, one - 1, one):
        with pytest.raises(ValueError, match="transfer"):
            annealers.restart(0, placement, order, sent)


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


def _halves(problem: Problem) -> Blocks:
    """Two blocks, which share no unit."""
    units = np.arange(problem.units, dtype=np.int32)
    start = np.unique([0, problem.units // 2, problem.units]).astype(np.int32)
    return Blocks(start, units, np.arange(len(start) - 1, dtype=np.int32))


def _exact(drawn: Problem, seed: int) -> Problem:
    own = tuple(structs.replace(link, channel="") for link in drawn.cluster.links)
    ops = tuple(
        structs.replace(op, seconds={d: s + 0.01 for d, s in (op.seconds or {}).items()})
        for op in drawn.graph.ops
    )
    rules = (drawn.rules, *list(RULES.values())[:3])[seed % 4]
    blocking = "blocking" in (rules.transfers or drawn.cluster.transfers)
    links = drawn.cluster.links if blocking else own
    cluster = dataclasses.replace(drawn.cluster, links=links)
    return Problem(dataclasses.replace(drawn.graph, ops=ops), cluster, "time", rules)


def _check_cost(
    problem: Problem, goal: str, fits: bool, cost: float, placement: Any, order: Any, early: Any
) -> None:
    simulator, sent = Simulator(problem), None
    if goal == "time" and problem.transfers == "blocking" and _fits_one_device(problem):
        sent = TransferOrder(*early)
        if not len(sent):
            sent = TransferOrder(
                *_core.simulation.blocking_transfers(simulator.core, placement, order)
            )
    schedule = scheduled(simulator, placement, order, "serial", sent)
    schedule.verify(problem, allow_overflow=True)
    over = schedule.overflow(problem)
    value = schedule.makespan if goal == "time" else float(schedule.peak.max())
    assert fits == (not over.any())
    if goal == "shortfall":
        assert cost == over.sum()
    elif fits:
        assert cost == value
    else:
        shares = (over / problem.capacity).sum()
        assert cost == pytest.approx(value * (1.05 + 10 * shares), rel=1e-9)


def _fits_one_device(problem: Problem) -> bool:
    """True where memory cannot matter, whatever is where."""
    held = problem.persistent.sum()
    if problem.rules.memory != "persistent":
        held += problem.workspace.max(initial=0) + problem.size.sum()
    return bool(held <= problem.capacity.min())


def test_the_core_refuses_what_is_no_decision_of_its_problem() -> None:
    problem = random_problem(1)
    core, order = Simulator(problem).core, np.array(problem.graph.order, np.int32)
    placement, nowhere = random_decision(problem, 1).placement, np.full_like(order, problem.d)
    annealers = _core.search.make_annealers(core, "time", 0, 1, placement, order)
    balancers = _core.search.make_load_annealers(core, 0, 1, placement, pipeline_order(problem))
    for restart in partial(annealers.restart, 0, order=order), partial(balancers.restart, 0):
        with pytest.raises(ValueError, match="a placement has one entry an op"):
            restart(placement=placement[:-1])
        with pytest.raises(ValueError, match="names a device that does not exist"):
            restart(placement=nowhere)
        with pytest.raises(ValueError, match="puts an op where it may not run"):
            restart(placement=problem.allowed.argmin(axis=1)[problem.unit].astype(np.int32))
    with pytest.raises(ValueError, match="an order has one entry an op"):
        annealers.restart(0, placement, order[:-1])
    with pytest.raises(ValueError, match="bytes have one entry an op"):
        balancers.weigh(0, problem.persistent[:-1], problem.capacity)
    with pytest.raises(ValueError, match="capacities have one entry a device"):
        balancers.weigh(0, problem.persistent, problem.capacity[:-1])
    with pytest.raises(ValueError, match="names a device that does not exist"):
        balancers.split(nowhere[:1], 1)
    with pytest.raises(ValueError, match="at least one device"):
        balancers.split(nowhere[:0], 1)


def test_places_of_transfers_are_refused_where_they_overlap() -> None:
    problem = Problem(fork(4), devices(1, 1))
    core, placement = Simulator(problem).core, np.zeros(problem.n, np.int32)
    order = np.array(problem.graph.order, np.int32)
    with pytest.raises(ValueError, match="transfers have places only where they are blocking"):
        _core.simulation.blocking_transfers(core, placement, order)
    annealers = _core.search.make_annealers(core, "time", 0, 1, placement, order)
    one = np.zeros(1, np.int32)
    with pytest.raises(ValueError, match="transfers have places only where they are blocking"):
        annealers.restart(0, placement, order, (one, one + 1, one))


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
    """A clock that stands still but for what is said to take time: decoding a plan 1 s, simulating
    one 0.5 s, dividing the graph 8 s, a slice of annealing 0.5 s. A slice ends with its evaluations
    and not by the core's own clock, so that no load on the machine changes what is searched."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        patch.setattr("time.perf_counter", lambda: self.now)
        cooling = import_module("situate.solvers.auto.cooling")
        patch.setattr(cooling, "INTERVAL", math.inf)
        patch.setattr(cooling, "MOST_EVALUATIONS", 500)
        patch.setattr(Simulator, "schedule", self._taking(1.0, Simulator.schedule))
        patch.setattr(Simulator, "evaluate", self._taking(0.5, Simulator.evaluate))
        patch.setattr(heavy_edge, "partitions", self._taking(8.0, heavy_edge.partitions))
        patch.setattr(critical, "folded_order", self._taking(6.0, critical.folded_order))

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
    """The rules are heard in any case; what comes then is begun only if there is time for it."""
    small = families.problem(family, objective)
    monkeypatch.setattr("situate.solvers.incumbent.gap", lambda *_: 1.0)  # nothing ends it before
    for limit in (40, 58, 130):
        with monkeypatch.context() as patch:
            clock = Clock(patch)
            result = solve(small, time_limit=limit, threads=1, on_progress=clock.report)
            assert result.seconds == clock.now <= 1.05 * limit, limit
    assert clock.now > 0.8 * limit
