"""BRKGA: its plans, its promises, and settings that make no sense."""

from __future__ import annotations

import signal
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest

from situate import _core
from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.results.result import Progress
from situate.simulation.decoding import priority_of
from situate.simulation.simulator import Simulator
from situate.solvers import solve
from situate.solvers.budget import Budget
from situate.solvers.evolutionary.brkga import (
    BRKGA,
    TUNED_BRKGA,
    BrkgaSettings,
    Linkage,
    breed,
    evolution,
)
from situate.solvers.learned.learner import Learning
from situate.solvers.search import Search
from tests.oracle.problems import random_problem
from tests.oracle.simulator import simulate
from tests.solvers.families import apart, chain, devices, layered, problem

DECODERS = ("serial", "eager")
SMALL = BrkgaSettings(population=20)


def evolved(
    of: Problem, evaluations: int = 400, threads: int = 1, goal: str = "time", **changes: Any
) -> _core.search.Brkga:
    settings = replace(SMALL, **{k: v for k, v in changes.items() if hasattr(SMALL, k)})
    others = {k: v for k, v in changes.items() if not hasattr(SMALL, k)}
    population = evolution(Simulator(of), settings, goal=goal, seed=others.pop("seed", 0), **others)
    population.run(evaluations, inf, threads)
    return population


def same(a: _core.search.Brkga, b: _core.search.Brkga) -> bool:
    pairs = zip((*a.best(), *a.population()), (*b.best(), *b.population()), strict=True)
    return all(np.array_equal(x, y) for x, y in pairs)


# Chromosomes are decoded as an independent implementation decodes them.


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("goal", ["time", "memory"])
@pytest.mark.parametrize("seed", range(25))
def test_what_is_best_is_what_the_oracle_makes_of_it(seed: int, goal: str, decoder: Any) -> None:
    drawn = random_problem(seed)
    excess, value, placement, of_ops, of_transfers = evolved(
        drawn, 60, goal=goal, decoder=decoder, seed=seed
    ).best()
    schedule = simulate(drawn, placement, of_ops, of_transfers, decoder)
    schedule.verify(drawn, allow_overflow=True)
    assert drawn.allowed[drawn.unit, placement].all()
    assert value == (schedule.makespan if goal == "time" else schedule.peak.max())
    over = schedule.excess(drawn)
    # Where all fits on any device peaks are not even counted.
    assert excess == over


# A population depends on its seed alone, and its best never gets worse.


@pytest.mark.parametrize("populations", [1, 3])
@pytest.mark.parametrize("decoder", DECODERS)
def test_neither_threads_nor_pauses_change_anything(decoder: Any, populations: int) -> None:
    of = problem("layered")
    changes = {"decoder": decoder, "populations": populations}
    once = evolved(of, 333, threads=1, **changes)
    assert same(once, evolved(of, 333, threads=3, **changes))
    paused = evolved(of, 1, **changes)
    for more in (6, 13, 100, 213):
        paused.run(more, inf, 2)
    assert same(once, paused)
    assert once.evaluations == paused.evaluations == 333


def test_a_population_that_is_bred_again_counts_its_evaluations_once() -> None:
    of = Problem(layered(4, 4, 0), devices(1, 1))
    search = Search(of, budget=Budget(evaluation_limit=1000), threads=1)
    population = evolution(search.simulator, BrkgaSettings(), goal="time", seed=0)
    breed(search, population, "serial", 150)
    before = search.budget.evaluations
    breed(search, population, "serial", 150)
    assert search.budget.evaluations == population.evaluations == before + 150


def test_the_seed_decides() -> None:
    of = problem("layered")
    assert same(evolved(of, seed=3), evolved(of, seed=3))
    assert not same(evolved(of, seed=3), evolved(of, seed=4))


def test_elites_are_not_evaluated_again() -> None:
    population = evolved(problem("layered"), 20 + 16 + 16)
    assert population.generation == 3
    keys, _, value = population.population()
    assert len(keys) == 20
    assert (np.diff(value) >= 0).all()


def test_the_best_never_gets_worse() -> None:
    population = evolved(problem("layered"), 1)
    values = []
    for _ in range(100):
        values.append(population.best()[:2])
        population.run(7, inf, 1)
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]


# Children, mutants and proposals draw keys from their distributions.


def test_keys_come_of_parents_or_are_new() -> None:
    """Without mutants every key is one of the generation before."""
    population = evolved(problem("layered"), 20, mutants=0.0)
    before, _, _ = population.population()
    population.run(16, inf, 1)
    after, _, _ = population.population()
    assert all(np.isin(after[:, key], before[:, key]).all() for key in range(before.shape[1]))
    assert ((after >= 0) & (after <= 1)).all()


def test_the_bias_is_the_share_of_an_elites_keys() -> None:
    """Two members: every child has the one elite and the one other as parents."""
    of = Problem(apart(2000), devices(1, 1))
    population = evolved(of, 2, population=2, elites=0.5, mutants=0.0, bias=0.8)
    [elite, _], _, _ = population.population()
    population.run(1, inf, 1)
    keys, _, _ = population.population()
    child = next(row for row in keys if not np.array_equal(row, elite))
    assert (child == elite).mean() == pytest.approx(0.8, abs=0.02)


def test_a_bias_a_key_is_obeyed() -> None:
    of = Problem(apart(500), devices(1, 1))
    count = _core.search.key_count(Simulator(of).core)
    bias = np.full(count, 0.5, np.float32)
    bias[: count // 2] = 1
    population = evolved(of, 2, population=2, elites=0.5, mutants=0.0, biases=bias)
    [elite, _], _, _ = population.population()
    population.run(1, inf, 1)
    keys, _, _ = population.population()
    child = next(row for row in keys if not np.array_equal(row, elite))
    assert (child == elite)[: count // 2].all()
    assert (child == elite)[count // 2 :].mean() == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    ("alpha", "beta"),
    [(1, 1), (2, 5), (30, 1.5), (0.5, 0.5), (0.1, 3), (1, 4), (1, 0.2), (400, 300), (1e-3, 1e-3)],
)
def test_keys_are_drawn_from_beta_distributions(alpha: float, beta: float) -> None:
    of = Problem(apart(4000), devices(1, 1))
    count = _core.search.key_count(Simulator(of).core)
    proposals = (np.full(count, alpha, np.float32), np.full(count, beta, np.float32))
    keys, _, _ = evolved(of, 4, population=4, elites=0.25, proposals=proposals).population()
    expected = np.random.default_rng(0).beta(alpha, beta, keys.size).astype(np.float32)
    assert ((keys >= 0) & (keys <= 1)).all()
    # The statistic of Kolmogorov and Smirnov, which one such pair in a thousand exceeds.
    values = np.sort(np.concatenate((keys.ravel(), expected)))
    shares = [
        np.searchsorted(np.sort(of), values, "right") / of.size for of in (keys.ravel(), expected)
    ]
    assert np.abs(shares[0] - shares[1]).max() < 1.95 * np.sqrt(2 / keys.size)


# Edges of a linkage join ops to parts, whose affinities are drawn and inherited together.


def linked(*edges: tuple[int, int], together: float = 1.0) -> Linkage:
    source, target = np.array(edges, np.int32).reshape(-1, 2).T
    return Linkage(source.copy(), target.copy(), np.full(len(edges), together, np.float32))


def affinities(population: _core.search.Brkga, of: Problem) -> np.ndarray:
    """(members, n, d)"""
    keys, _, _ = population.population()
    return keys[:, : of.n * of.d].reshape(len(keys), of.n, of.d)


def test_the_ops_of_a_part_have_the_same_affinities_forever() -> None:
    of = Problem(apart(10), devices(1, 1, 1))
    population = evolved(of, 400, linkage=linked((7, 3), (3, 5), (0, 9)), mutants=0.2)
    keys = affinities(population, of)
    assert (keys[:, [3, 5, 7]] == keys[:, [3]]).all()
    assert (keys[:, 0] == keys[:, 9]).all()
    assert not (keys[:, 0] == keys[:, 3]).any()


def test_the_ops_of_a_part_come_of_one_parent() -> None:
    of = Problem(apart(500), devices(1, 1))
    changes: dict[str, Any] = {"population": 2, "elites": 0.5, "mutants": 0.0, "bias": 0.8}
    linkage = linked(*((op, op + 1) for op in range(0, 500, 2)))
    # The first generation is drawn without parts, so that the parents' ops can be told apart.
    population = evolved(of, 2, begin=starts(of, 2), linkage=linkage, **changes)
    [elite, _] = affinities(population, of)
    population.run(1, inf, 1)
    child = next(row for row in affinities(population, of) if not np.array_equal(row, elite))
    inherited = (child == elite).all(axis=1).reshape(-1, 2)
    assert (inherited[:, 0] == inherited[:, 1]).all()
    assert inherited[:, 0].mean() == pytest.approx(0.8, abs=0.08)


def starts(of: Problem, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    draw, order = np.random.default_rng(0), np.arange(of.n, dtype=np.int32)
    return [(draw.integers(of.d, size=of.n, dtype=np.int32), order) for _ in range(count)]


def test_an_edge_joins_as_often_as_it_says() -> None:
    of = Problem(apart(1000), devices(1, 1))
    pairs = [(op, op + 1) for op in range(0, 1000, 2)]
    population = evolved(of, 4, population=4, linkage=linked(*pairs, together=0.3))
    first = affinities(population, of).reshape(4, -1, 2, 2)
    assert (first[:, :, 0] == first[:, :, 1]).all(axis=2).mean() == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize("linkage", [linked(), linked((0, 1), together=0.0), linked((1, 1))])
def test_edges_that_join_nothing_change_nothing(linkage: Linkage) -> None:
    of = problem("layered")
    assert same(evolved(of, 200), evolved(of, 200, linkage=linkage))


def test_neither_threads_nor_pauses_change_a_search_in_parts() -> None:
    of = problem("layered")
    linkage = linked((0, 2), (1, 3), (2, 4), together=0.5)
    once = evolved(of, 333, linkage=linkage)
    paused = evolved(of, 100, threads=3, linkage=linkage)
    paused.run(233, inf, 2)
    assert same(once, paused)


def test_proposals_push_ops_to_a_device() -> None:
    of = Problem(apart(6), devices(1, 1, 1))
    count = _core.search.key_count(Simulator(of).core)
    alpha, beta = np.ones((2, count), np.float32)
    affinities = alpha[: 6 * 3].reshape(6, 3)
    affinities[:, 2], beta[: 6 * 3].reshape(6, 3)[:, 2] = 1e4, 1e-2
    placement = evolved(of, 1, proposals=(alpha, beta)).best()[2]
    assert (placement == 2).all()


# Memory comes before time, and colocation groups stay together.


def test_what_fits_comes_before_what_is_fast() -> None:
    """On one device nothing waits for a transfer, but two ops' bytes are too many for it."""
    slow = tuple(Op(f"op{j}", seconds={"*": 1.0}, persistent=6) for j in range(2))
    of = Problem(Graph("g", slow, (Tensor("t", 0, 1, (1,), seconds=100.0),)), _rooms(10))
    excess, value, placement, _, _ = evolved(of, 40).best()
    assert (excess, value) == (0, 102)
    assert placement[0] != placement[1]
    roomy = Problem(of.graph, _rooms(100))
    assert evolved(roomy, 40).best()[:2] == (0, 2)


def _rooms(memory: int) -> Cluster:
    return devices(1, 1, memory=memory)


def test_where_nothing_fits_the_least_excess_is_kept() -> None:
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}, persistent=6) for j in range(4))
    excess, _, placement, _, _ = evolved(Problem(Graph("g", ops), _rooms(10)), 40).best()
    assert excess == 4
    assert sorted(placement) == [0, 0, 1, 1]


def test_a_unit_goes_where_its_first_op_wants_to() -> None:
    of = Problem(apart(4, group="g"), devices(1, 1, 1))
    placement = evolved(of, 20).best()[2]
    assert (placement == placement[0]).all()
    keys, _, _ = evolved(of, 20, population=20).population()
    assert (keys[:, : 4 * 3].reshape(-1, 4, 3)[0, 0].argmax()) == evolved(of, 20).best()[2][0]


@pytest.mark.parametrize("decoder", DECODERS)
def test_it_begins_with_given_decisions(decoder: Any) -> None:
    of = Problem(layered(4, 3, 1), devices(1, 1), rules="regal")
    placement = (np.arange(of.n) % 2).astype(np.int32)
    order = np.array(of.graph.order, np.int32)
    population = evolved(of, 1, decoder=decoder, begin=[(placement, order)])
    _, value, result, of_ops, _ = population.best()
    assert (result == placement).all()
    assert (np.argsort(-of_ops) == order).all()
    schedule = Simulator(of).schedule(placement, priority_of(order), decoder=decoder)
    assert value == schedule.makespan


# As a method: plans verify, small problems are solved, budgets hold.


@pytest.mark.parametrize("method", ["brkga", "tuned_brkga"])
@pytest.mark.parametrize("settings", ["paper", "tuned"])
@pytest.mark.parametrize("objective", ["time", "memory"])
def test_results_are_those_of_their_plans(method: str, settings: Any, objective: str) -> None:
    of = Problem(layered(5, 4, 2), devices(1, 2, 1), objective, "regal")  # type: ignore[arg-type]
    result = solve(of, method, evaluations=300, learning=Learning(settings=settings))
    assert result.evaluations == 300
    assert result.decoder == BRKGA[settings].decoder
    assert result.plan.schedule(of).makespan == result.makespan
    result.schedule.verify(of)


@pytest.mark.parametrize(
    "of",
    [
        Problem(chain(1), devices(1)),
        Problem(chain(1), devices(1, 1, 1)),
        Problem(chain(6), devices(1)),
        Problem(chain(2), devices(1, 1, 1, 1, 1)),
        Problem(apart(3, device="d1"), devices(1, 1)),
        Problem(apart(3, group="all"), devices(1, 1)),
    ],
    ids=["one op", "one op, three devices", "one device", "more devices", "pinned", "one group"],
)
def test_where_there_is_little_to_choose_the_optimum_is_found(of: Problem) -> None:
    for settings in ("paper", "tuned"):
        result = solve(of, "brkga", evaluations=200, learning=Learning(settings=settings))  # type: ignore[arg-type]
        assert result.value == solve(of, "auto", evaluations=200).value


def test_threads_change_no_result() -> None:
    of = Problem(layered(5, 4, 2), devices(1, 1), rules="regal")
    one, three = (solve(of, "brkga", evaluations=2500, threads=threads) for threads in (1, 3))
    assert one.plan.placement == three.plan.placement
    assert one.plan.transfers == three.plan.transfers
    assert [line[1:] for line in one.history] == [line[1:] for line in three.history]


def test_a_budget_of_nothing_gives_a_plan() -> None:
    result = solve(problem("layered"), "brkga", time_limit=0)
    assert result.evaluations == 1


def test_a_search_ends_at_the_bound() -> None:
    of = Problem(chain(4), devices(1, 1))
    assert solve(of, "brkga", evaluations=10**9).optimal


# Objectives, rules and arrays that BRKGA cannot take are refused.


@pytest.mark.parametrize("method", ["brkga", "tuned_brkga"])
def test_throughput_is_refused(method: str) -> None:
    with pytest.raises(SituateError, match="not the seconds between steps: use auto"):
        solve(problem("chain", "throughput"), method, evaluations=9)


def test_calls_are_refused() -> None:
    with pytest.raises(SituateError, match=r"'dnn-partitioning'.*: use auto"):
        solve(problem("chain", "time", "dnn-partitioning"), "brkga", evaluations=9)


def test_other_options_of_learners_are_refused() -> None:
    with pytest.raises(SituateError, match="does not learn"):
        solve(problem("chain"), "brkga", evaluations=9, learning=Learning(noise=0.1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"biases": np.full(4, 0.7, np.float32)}, "for every key"),
        ({"biases": np.full(8, 0.4, np.float32)}, "0.5 to 1"),
        ({"proposals": (np.ones(8, np.float32), np.zeros(8, np.float32))}, "at most 1e12"),
        ({"proposals": (np.full(8, np.nan, np.float32),) * 2}, "at most 1e12"),
        ({"proposals": (np.full(8, 1e20, np.float32),) * 2}, "at most 1e12"),
        ({"linkage": linked((0, 2))}, "between ops"),
        ({"linkage": linked((-1, 1))}, "between ops"),
        ({"linkage": linked((0, 1), together=1.5)}, "from 0 to 1"),
        ({"linkage": linked((0, 1), together=np.nan)}, "from 0 to 1"),
        ({"linkage": replace(linked((0, 1)), together=np.ones(2, np.float32))}, "every edge"),
        ({"begin": [(np.array([0, 2], np.int32), np.arange(2, dtype=np.int32))]}, "device"),
        ({"begin": [(np.zeros(2, np.int32), np.array([1, 0], np.int32))]}, "topological"),
    ],
)
def test_arrays_that_are_not_valid_are_refused(changes: dict[str, Any], message: str) -> None:
    of = Problem(chain(2), devices(1, 1))
    assert _core.search.key_count(Simulator(of).core) == 2 * 2 + 2 + 1 * 2
    with pytest.raises(ValueError, match=message):
        evolution(Simulator(of), SMALL, goal="time", seed=0, **changes)


def test_what_is_neither_time_nor_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="the goal is time or memory"):
        evolution(Simulator(problem("chain")), SMALL, goal="shortfall", seed=0)


def test_there_is_no_best_of_nothing() -> None:
    population = evolved(problem("chain"), 0)
    assert population.evaluations == 0
    with pytest.raises(ValueError, match="nothing was evaluated"):
        population.best()


def test_decisions_come_before_the_first_evaluation() -> None:
    population, none = evolved(problem("chain"), 1), np.zeros(0, np.int32)
    with pytest.raises(ValueError, match="under way"):
        population.begin_with(none, none)


def test_chromosomes_that_fill_the_machine_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situate.solvers.evolutionary.brkga.usable_memory", lambda: 10_000)
    with pytest.raises(SituateError, match=r"180 chromosomes of 33 keys, 23760 bytes.*: use auto"):
        solve(Problem(chain(7), devices(1, 1)), "brkga", evaluations=9)


# Signals end a run without losing its best plan.


def test_ctrl_c_returns_the_best_so_far() -> None:
    def interrupt(progress: Progress) -> None:
        if progress.evaluations >= 1000:
            raise KeyboardInterrupt

    of = Problem(layered(5, 4, 2), devices(1, 1), rules="regal")
    result = solve(of, "brkga", evaluations=10**7, on_progress=interrupt)
    assert result.plan.schedule(of).makespan == result.value


def test_a_signal_ends_the_core_and_loses_nothing() -> None:
    """The populations go on as if nothing had been."""
    of = Problem(layered(5, 4, 2), devices(1, 1), rules="regal")
    population = evolved(of, 50)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            population.run(10**12, inf, 2)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    population.run(10, inf, 2)
    assert same(population, evolved(of, population.evaluations))


# Settings become numbers of chromosomes, or are refused.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"population": 1}, "two chromosomes"),
        ({"populations": 0}, "two chromosomes"),
        ({"elites": 0.0}, "shares of the population"),
        ({"elites": 1.0}, "shares of the population"),
        ({"elites": 0.5, "mutants": 0.6}, "shares of the population"),
        ({"mutants": -0.1}, "shares of the population"),
        ({"bias": 0.4}, "from 0.5 to 1"),
        ({"bias": float("nan")}, "from 0.5 to 1"),
        ({"alpha": 0.0}, "positive and at most 1e12"),
        ({"beta": float("inf")}, "positive and at most 1e12"),
        ({"beta": 1e13}, "positive and at most 1e12"),
    ],
)
def test_what_no_generation_can_be_made_of_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(SituateError, match=message):
        BrkgaSettings(**changes)


@pytest.mark.parametrize(
    ("population", "sizes"), [(100, (100, 20, 15)), (10, (10, 2, 2)), (2, (2, 1, 0))]
)
def test_shares_become_chromosomes(population: int, sizes: tuple[int, int, int]) -> None:
    assert BrkgaSettings(population=population).sizes == sizes


def test_all_may_be_mutants_but_the_elites() -> None:
    assert BrkgaSettings(population=10, elites=0.25, mutants=0.75).sizes == (10, 2, 8)


def test_the_decoder_of_the_paper_is_serial() -> None:
    for settings in (BRKGA, TUNED_BRKGA):
        assert [settings[name].decoder for name in ("paper", "tuned")] == ["serial", "eager"]
