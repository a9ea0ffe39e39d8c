"""Every method, on every family, under every objective and all rules, gives a plan that holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.readers import read
from situate.results.result import Progress, Result
from situate.simulation.decoding import priority_of
from situate.solvers import LEARNERS, METHODS, OF_PARTS, OF_SLICES, WITH_WEIGHTS, solve
from situate.solvers.learned.learner import Learning
from tests.oracle.problems import random_problem
from tests.oracle.simulator import simulate
from tests.readers.test_dnn_partitioning import DATA
from tests.solvers.families import (
    OBJECTIVES,
    RULES,
    apart,
    devices,
    families,
    fork,
    pinned_and_grouped,
    problem,
)
from tests.solvers.programs import MISSING, needs_ortools

PROGRAMS = [method for method in ("scotch", "mincut") if not MISSING[method]]
GENERAL = [
    method
    for method in METHODS
    if method
    not in (
        "expert",
        "scotch",
        "mincut",
        "cp_sat",
        *OF_PARTS,
        *OF_SLICES,
        *WITH_WEIGHTS,
        *LEARNERS,
    )
    and not MISSING.get(method)
]
MANY_PAIRS = ("wide", "17 devices")
"""Families of which exact models are large."""

SOFTMAX = ["policy_gradient", "ppo", "cross_entropy", "post"]
BRED = ("brkga", "tuned_brkga")
EVALUATIONS = {"auto": 600, "random": 20}


def general(problem: Problem) -> list[str]:
    """The methods that know the problem's objective and rules."""
    calls = problem.transfers == "atomic" and problem.objective == "time"
    bred = not calls and problem.objective != "throughput"
    justified = problem.transfers == "overlapped" and problem.objective == "time"
    refused = (*(() if bred else BRED), *(() if justified else ("justification",)))
    return [method for method in GENERAL if method not in refused]


def urgency(result: Result) -> tuple[Any, Any]:
    """Priorities (n,) of the ops, and (m, d) of the transfers or None."""
    if result.transfers is None:
        return priority_of(result.order), None
    return result.transfers.priorities(result.problem, result.order)


def solved(problem: Problem, method: str, **changes: Any) -> Result:
    """By evaluations alone, and checked against everything a result says of itself."""
    budget = {"time_limit": None, "evaluations": EVALUATIONS.get(method, 100)} | changes
    result = solve(problem, method, **budget)
    check(problem, result)
    return result


def check(problem: Problem, result: Result) -> None:
    schedule = result.schedule
    fits = bool((schedule.peak <= problem.capacity).all())
    assert result.feasible == (fits and np.isfinite(result.value))
    if np.isfinite(schedule.makespan):
        schedule.verify(problem, allow_overflow=not result.feasible)
    assert problem.allowed[problem.unit, result.placement].all()
    assert (np.sort(result.order) == np.arange(problem.n)).all()
    assert (result.lower_bound is None) == (not result.feasible)
    assert result.lower_bound is None or result.value >= result.lower_bound
    measured = {
        "time": schedule.makespan,
        "memory": schedule.peak.max(),
        "throughput": schedule.period(problem),
    }
    assert result.value == measured[problem.objective]
    values = [value for _, _, value in result.history]
    assert values[-1] == result.value
    assert [e for _, e, _ in result.history] == sorted(e for _, e, _ in result.history)


def in_turn(names: Iterable[str]) -> list[tuple[str, str, str]]:
    """Each family under all rules and all objectives; families in a row pair them differently, so
    that all rules also meet all objectives."""
    return [
        (family, OBJECTIVES[(i + j) % len(OBJECTIVES)], rules)
        for i, family in enumerate(names)
        for j, rules in enumerate(RULES)
    ]


@pytest.mark.parametrize(("family", "objective", "rules"), in_turn(families()))
def test_plans_hold_on_every_family(family: str, objective: str, rules: str) -> None:
    of = problem(family, objective, rules)
    for method in general(of):
        solved(of, method)


@pytest.mark.parametrize("number", range(len(SOFTMAX)))
@pytest.mark.parametrize("family", families())
def test_learnt_plans_hold_on_every_family(family: str, number: int) -> None:
    """Learners meet rules in turn, which differ from one family to the next."""
    turn = number + list(families()).index(family)
    solved(problem(family, "time", RULES[turn % len(RULES)]), SOFTMAX[number])


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("family", families())
def test_plans_of_other_programs_hold_on_every_family(family: str, rules: str) -> None:
    for method in PROGRAMS:
        solved(problem(family, "time", rules), method)


@needs_ortools
@pytest.mark.parametrize(
    ("family", "objective", "rules"),
    in_turn(name for name in families() if name not in MANY_PAIRS),
)
def test_exact_plans_hold_on_every_family(family: str, objective: str, rules: str) -> None:
    solved(problem(family, objective, rules), "cp_sat", evaluations=30)


@needs_ortools
@pytest.mark.parametrize("family", MANY_PAIRS)
def test_exact_plans_hold_where_transfers_are_many(family: str) -> None:
    solved(problem(family), "cp_sat", evaluations=30)


@needs_ortools
@pytest.mark.parametrize("seed", range(40))
def test_exact_plans_hold_on_random_problems(seed: int) -> None:
    drawn = random_problem(seed)
    exact = Problem(drawn.graph, drawn.cluster, OBJECTIVES[seed % 3], drawn.rules)
    solved(exact, "cp_sat", evaluations=30)


@pytest.mark.parametrize("method", LEARNERS)
@pytest.mark.parametrize("objective", ["memory", "throughput"])
def test_step_times_teach_nothing_but_time(method: str, objective: str) -> None:
    with pytest.raises(
        SituateError, match=f"learns from step times: it cannot plan for {objective}"
    ):
        solve(problem("chain", objective), method)


@pytest.mark.parametrize("seed", range(40))
def test_plans_hold_on_random_problems(seed: int) -> None:
    """Rules of their own and named ones; objectives and learners take turns."""
    drawn = random_problem(seed)
    turns = ((drawn.rules, OBJECTIVES[seed % 3]), (RULES[seed % 4], OBJECTIVES[(seed + 1) % 3]))
    for rules, objective in turns:
        of = Problem(drawn.graph, drawn.cluster, objective, rules)
        for method in general(of):
            solved(of, method)
        learnt = SOFTMAX[seed % len(SOFTMAX)]
        solved(Problem(drawn.graph, drawn.cluster, "time", rules), learnt)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("folder", ["throughput-inputs", "latency-inputs"])
def test_plans_hold_on_a_published_network(folder: str, objective: str) -> None:
    network = read(DATA / folder / "LayerGraphs" / "bert24_inference.json")
    cluster = Cluster.of_machine("file", network.machine)
    of = Problem(network, cluster, objective, network.rules)  # type: ignore[arg-type]
    for method in general(of):
        solved(of, method)


@pytest.mark.parametrize("method", GENERAL)
def test_pins_and_groups_hold(method: str) -> None:
    problems = [Problem(pinned_and_grouped(), devices(1, 2, 1), "time", rules) for rules in RULES]
    for one in problems:
        if method not in general(one):
            continue
        result = solved(one, method)
        assert result.placement.tolist() == [1, 2, 1, 0]


def extremes() -> dict[str, Problem]:
    """Problems at the edge of all that are valid."""
    one, two = devices(1), devices(1, 2)
    pinned = tuple(Op(f"op{j}", seconds={"*": 1.0}, device=f"d{j % 2}") for j in range(6))
    grouped = tuple(Op(f"op{j}", seconds={"*": 1.0}, group="all") for j in range(6))
    far = tuple(
        Op(f"op{j}", seconds={"*": 10.0 ** (3 * j - 9)}, persistent=10 ** (3 * j)) for j in range(6)
    )
    tensors = tuple(Tensor(f"t{j}", j, 10 ** (15 - 3 * j), (j + 1,)) for j in range(5))
    return {
        "one op, one device": Problem(apart(1), one),
        "more devices than ops": Problem(fork(3), devices(*[1] * 7)),
        "all pinned": Problem(Graph("g", pinned, tensors), two),
        "all in one group": Problem(Graph("g", grouped, tensors), two),
        "15 orders of magnitude apart": Problem(Graph("g", far, tensors), two),
        "and with little memory": Problem(
            Graph("g", far, tensors), devices(1, 2, memory=10**15 + 10**12)
        ),
    }


@pytest.mark.parametrize("extreme", extremes())
@pytest.mark.parametrize("method", GENERAL)
def test_plans_hold_at_the_extremes(method: str, extreme: str) -> None:
    """The oracle makes the same schedule of the decision, under all rules that it knows."""
    case = extremes()[extreme]
    for objective in OBJECTIVES:
        for rules in ("situate", "regal", "doppler"):
            posed = Problem(case.graph, case.cluster, objective, rules)  # type: ignore[arg-type]
            if method not in general(posed):
                continue
            result = solved(posed, method)
            by_hand = simulate(posed, result.placement, *urgency(result), decoder=result.decoder)  # type: ignore[arg-type]
            assert by_hand.makespan == result.schedule.makespan
            assert np.array_equal(by_hand.start, result.schedule.start)
            assert np.array_equal(by_hand.peak, result.schedule.peak)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_where_nothing_can_move_the_search_ends(objective: Any) -> None:
    """The tensor between two pinned ops takes longer than any bound knows."""
    ops = tuple(Op(name, seconds={"*": 1.0}, device=f"d{j}") for j, name in enumerate("ab"))
    fixed = Graph("g", ops, (Tensor("t", 0, 10, (1,)),))
    of = Problem(fixed, devices(1, 1), objective)
    for method in general(of):
        result = solved(of, method, evaluations=600)
        assert result.placement.tolist() == [0, 1]


@pytest.mark.parametrize("method", GENERAL)
def test_ops_run_only_where_they_can(method: str) -> None:
    ops = tuple(Op(f"op{j}", seconds={f"d{j % 3}": 1.0}, persistent=1) for j in range(9))
    result = solved(Problem(Graph("g", ops), devices(1, 1, 1)), method)
    assert result.placement.tolist() == [0, 1, 2] * 3


@pytest.mark.parametrize("method", [*GENERAL, *SOFTMAX])
def test_no_time_gives_a_plan_all_the_same(method: str) -> None:
    result = solve(problem("layered"), method, time_limit=0)
    check(problem("layered"), result)
    assert result.evaluations >= 1


@pytest.mark.parametrize("method", GENERAL)
@pytest.mark.parametrize("evaluations", [1, 7, 50, 400])
def test_the_budget_is_kept(method: str, evaluations: int) -> None:
    """A rule that was begun is ended: at most its own decisions more, two a device and decoder."""
    result = solved(problem("bus"), method, evaluations=evaluations)
    assert result.evaluations <= evaluations + 2 * 2 * 3


def test_ctrl_c_returns_the_best_plan_so_far() -> None:
    reports: list[Progress] = []

    def interrupt(progress: Progress) -> None:
        reports.append(progress)
        if len(reports) == 10:
            raise KeyboardInterrupt

    bus = problem("bus")
    result = solve(bus, "auto", time_limit=60, on_progress=interrupt)
    check(bus, result)
    assert len(reports) == 10
    assert result.value == reports[-1].value
    assert result.evaluations == reports[-1].evaluations


def test_ctrl_c_at_the_first_decision_returns_it() -> None:
    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    assert solve(problem("bus"), on_progress=interrupt).history


def test_progress_never_gets_worse() -> None:
    reports: list[Progress] = []
    solve(problem("bus"), time_limit=None, evaluations=500, on_progress=reports.append)
    values = [progress.value for progress in reports if progress.feasible]
    assert values == sorted(values, reverse=True)
    assert {progress.lower_bound for progress in reports} == {reports[0].lower_bound}


def test_a_large_graph_has_a_plan_before_it_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situate.solvers.OPS_FOR_FIRST_PLAN", 1)
    reports: list[Progress] = []
    result = solve(problem("bus"), evaluations=500, on_progress=reports.append)
    assert reports[0].feasible
    assert reports[0].lower_bound == 0 < reports[-1].lower_bound == result.lower_bound
    assert result.bounded_by


def test_evaluations_alone_set_no_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situate.solvers.DEFAULT_SECONDS", 0.0)
    assert solve(problem("bus"), evaluations=500).evaluations > 400


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "hefty"}, "unknown method 'hefty'; did you mean 'heft'?"),
        ({"method": "zzz"}, "unknown method 'zzz'; known: auto, brkga, colocrl"),
        ({"time_limit": -1.0}, "time limit must not be negative, got -1.0"),
        ({"time_limit": float("nan")}, "time limit must not be negative, got nan"),
        ({"evaluations": 0}, "evaluations: must be at least 1, got 0"),
        ({"seed": -1}, "seed: must be between 0 and 2"),
        ({"seed": 2**32}, "seed: must be between 0 and 2"),
        ({"threads": 0}, "threads: must be at least 1, got 0"),
        ({"evaluations": 9.5}, "evaluations: must be an integer, got 9.5"),
        ({"seed": 1.0}, "seed: must be an integer, got 1.0"),
        ({"threads": "2"}, "threads: must be an integer, got '2'"),
        ({"seed": None}, "seed: must be an integer, got None"),
        ({"method": "heft", "learning": Learning(noise=0.1)}, "learning: method 'heft' does not"),
    ],
)
def test_bad_arguments_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SituateError) as error:
        solve(problem("chain"), **changes)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("objective", "rules", "message"),
    [
        ("tim", "situate", "unknown objective 'tim'; did you mean 'time'?"),
        (None, "situate", "unknown objective None; known: memory, throughput, time"),
        ("time", "regla", "unknown rules 'regla'; did you mean 'regal'?"),
    ],
)
def test_unknown_objectives_and_rules_are_named(objective: Any, rules: Any, message: str) -> None:
    with pytest.raises(SituateError, match=message.replace("?", r"\?")):
        Problem(apart(2), devices(1), objective, rules)


def test_calls_that_must_wait_for_one_another_are_not_feasible() -> None:
    """a and c in one call, b between them in another: neither call can begin."""
    ops = tuple(Op(name, seconds={"*": 1.0}, device=f"d{j % 2}") for j, name in enumerate("abc"))
    tensors = (Tensor("p", 0, 1, (1,)), Tensor("q", 1, 1, (2,)))
    stuck = Problem(Graph("g", ops, tensors), devices(1, 1), "time", "dnn-partitioning")  # type: ignore[arg-type]
    for method in general(stuck):
        result = solved(stuck, method)
        assert not result.feasible
        assert result.value == float("inf")
        assert result.plan.value is None


def test_what_fits_nowhere_says_so() -> None:
    too_much = Problem(apart(5, persistent=10), devices(1, 1, memory=20))
    for method in GENERAL:
        result = solved(too_much, method)
        assert not result.feasible
        assert result.schedule.overflow(too_much).sum() >= 10
    assert solved(too_much, "auto").schedule.overflow(too_much).sum() == 10


def test_a_larger_time_limit_does_not_prolong_a_proved_search() -> None:
    result = solve(Problem(apart(4), devices(1, 1)), time_limit=3600)
    assert result.value == result.lower_bound == 2
    assert result.gap == 0


def test_a_limit_on_both_time_and_evaluations_keeps_both() -> None:
    bus = problem("bus")
    result = solve(bus, time_limit=3600, evaluations=2000, threads=2)
    check(bus, result)
    assert result.evaluations <= 2012


def test_synchronisation_and_channels_are_paid() -> None:
    plain = Problem(fork(8), devices(1, 1, bandwidth=float("inf")))
    costly = dataclasses.replace(plain.cluster, synchronisation=100.0)
    assert solved(plain, "auto").value < solved(Problem(plain.graph, costly), "auto").value == 8


def test_two_devices_of_one_kind_and_other_links_are_both_tried() -> None:
    """Only into d1 are the links slow, and the last op is pinned to d2."""
    cluster = Cluster(
        "c",
        tuple(Device(f"d{i}", kind="x1") for i in range(3)),
        (Link("*", "*", 1.0), Link("d0", "d2", 0.01, both=False)),
    )
    ops = (Op("a", seconds={"*": 1.0}), Op("b", seconds={"*": 1.0}, device="d2"))
    pinned = Problem(Graph("g", ops, (Tensor("t", 0, 10, (1,)),)), cluster)
    assert solved(pinned, "single").value == 2
