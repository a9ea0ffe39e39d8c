"""Climbing, and its start with one part per device."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from msgspec import structs

from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.grouping import heavy_edge
from situate.results.result import Progress
from situate.solvers import solve
from situate.solvers.auto.improve.climb import (
    CLIMB_SHARE,
    SECOND_ASCENT_EVALUATIONS,
    SEED_RANGE,
    TRIAL_EVALUATIONS,
    climb,
    launches_dominate,
    offer_one_part_per_device,
    one_part_each,
)
from situate.solvers.budget import Budget
from situate.solvers.evaluate import evaluate
from situate.solvers.heuristics.baselines import single
from situate.solvers.heuristics.list_rules import heft
from situate.solvers.learned.groups import op_weights
from situate.solvers.local_search.hill_climbing import HillClimber
from situate.solvers.search import Search
from tests.solvers.families import chain, devices, problem
from tests.solvers.learning import branching

LAYERS, STEPS = 4, 40


def unrolled(cluster: Cluster) -> Problem:
    """Steps of layers, forwards and then backwards; each op reads its layer's weights."""
    ops = [Op(f"weights{layer}", seconds={"*": 0.0}, persistent=50) for layer in range(LAYERS)]
    reads: list[list[int]] = [[] for _ in range(LAYERS)]
    place = {}
    for direction, turn in ("forward", 1), ("backward", -1):
        for step in range(STEPS)[::turn]:
            for layer in range(LAYERS)[::turn]:
                near = [(direction, step - turn, layer), (direction, step, layer - turn)]
                inputs = [place[key] for key in (*near, ("forward", step, layer)) if key in place]
                for op in (layer, *inputs):
                    reads[op].append(len(ops))
                place[direction, step, layer] = len(ops)
                ops.append(Op(f"{direction}{step}.{layer}", seconds={"*": float(2 - turn)}))
                reads.append([])
    tensors = [
        Tensor(f"t{op}", op, 1 if op >= LAYERS else 50, tuple(users), resident=op < LAYERS)
        for op, users in enumerate(reads)
    ]
    return Problem(Graph("unrolled", tuple(ops), tuple(tensors)), cluster)


def by_layer(problem: Problem) -> np.ndarray:
    return np.array([int(op.name[-1]) for op in problem.graph.ops], np.int32)


@pytest.fixture
def recurrent() -> Problem:
    return unrolled(devices(1, 1, 1, 1, bandwidth=10))


# A part of the network on each accelerator: a layer, where it is unrolled.
def test_parts_of_an_unrolled_network_are_its_layers(recurrent):
    labels = heavy_edge.labels(recurrent, LAYERS)
    assert one_part_each(recurrent, labels).tolist() == by_layer(recurrent).tolist()


def test_auto_takes_no_longer_than_a_layer_a_device(recurrent):
    by_hand = evaluate(recurrent, by_layer(recurrent))
    result = solve(recurrent, time_limit=None, evaluations=3000)
    assert result.value <= by_hand.value


def test_a_unit_that_may_not_go_there_goes_where_it_may(recurrent):
    first, *others = recurrent.graph.ops
    ops = (structs.replace(first, device="d2"), *others)
    graph = Graph("pinned", ops, recurrent.graph.tensors)
    pinned = Problem(graph, recurrent.cluster)
    assert one_part_each(pinned, by_layer(recurrent)).tolist() == [2, *by_layer(recurrent)[1:]]


@pytest.mark.parametrize(("memory", "is_offered"), [(None, True), (10, False)])
def test_they_are_offered_if_they_are_better(memory, is_offered):
    """All on the first, which alone has memory for more than one layer's weights."""
    problem = unrolled(devices(1, 1, 1, 1, bandwidth=10))
    first, *others = problem.cluster.devices
    small = [structs.replace(device, memory=memory) for device in others]
    cluster = Cluster("small", (first, *small), problem.cluster.links)
    search = Search(
        Problem(problem.graph, cluster), budget=Budget(evaluation_limit=1000), threads=1
    )
    single(search)
    before = search.best
    offer_one_part_per_device(search, by_layer(problem))
    assert (search.best is not before) == is_offered


def test_by_rank_a_part_need_not_wait_for_the_whole_of_the_one_before():
    """Each device has a layer, and every other op of it is one that nothing waits for."""
    ops = [Op(f"op{i}", seconds={"*": 1.0}) for i in range(8)]
    tensors = tuple(Tensor(f"t{i}", i, 0, (i + 2,)) for i in (1, 3, 5))
    chain = Problem(Graph("layers", tuple(ops), tensors), devices(1, 1, 1, 1, bandwidth=10))
    search = Search(chain, budget=Budget(evaluation_limit=1000), threads=1)
    single(search)
    offer_one_part_per_device(search, np.repeat(np.arange(4), 2))
    assert search.best.value == 4.0


def searching(of: Problem, evaluations: int, rule=single, threads: int = 1) -> Search:
    """A search that has heard one rule."""
    search = Search(of, budget=Budget(evaluation_limit=evaluations), threads=threads)
    rule(search)
    return search


# Climbing within `auto`: from its best plan, within a share of its budget.
def test_it_betters_the_plan_that_it_began_with():
    search = searching(branching(), 2000)
    before = search.best.value
    climb(search)
    assert search.best.value < 0.6 * before


@pytest.mark.parametrize("evaluations", [10, 100, 1000])
def test_it_takes_its_share_of_what_is_left(evaluations):
    search = searching(branching(), evaluations)
    left = evaluations - search.budget.evaluations
    climb(search)
    assert evaluations - search.budget.evaluations >= (1 - CLIMB_SHARE) * left - 20


def test_from_where_it_ended_it_ends_early():
    search = searching(branching(), 20_000)
    climb(search)
    again, value = search.budget.evaluations, search.best.value
    climb(search)
    assert search.best.value <= value
    assert search.budget.evaluations - again < 0.5 * CLIMB_SHARE * 20_000


def interrupting(of: Problem, evaluations: int) -> Search:
    """A search that is interrupted after so many evaluations."""

    def interrupt(progress: Progress) -> None:
        if progress.evaluations >= evaluations:
            raise KeyboardInterrupt

    search = Search(of, budget=Budget(evaluation_limit=100_000), threads=1, on_progress=interrupt)
    single(search)
    return search


@pytest.mark.parametrize("evaluations", [40, 70, 500])
def test_what_it_has_found_outlives_an_interrupt(evaluations):
    search = interrupting(branching(), evaluations)
    before = search.best.value
    with pytest.raises(KeyboardInterrupt):
        climb(search)
    assert search.best.value < before


def test_it_tells_of_what_is_better_as_it_goes():
    seen: list[float] = []
    search = Search(
        branching(),
        budget=Budget(evaluation_limit=4000),
        threads=1,
        on_progress=lambda progress: seen.append(progress.value),
    )
    single(search)
    climb(search)
    assert len(set(seen)) > 3


def test_it_has_some_tries_in_any_case():
    """No neighbour of a chain on one device is ahead of it."""
    search = searching(Problem(chain(40), devices(1, 1)), 5 * TRIAL_EVALUATIONS)
    before = search.budget.evaluations
    climb(search)
    assert TRIAL_EVALUATIONS <= search.budget.evaluations - before < TRIAL_EVALUATIONS + 20


@pytest.mark.parametrize(("times", "seeds"), [(5, {0}), (20, {0, SEED_RANGE})])
def test_with_plenty_of_evaluations_it_begins_twice(monkeypatch, times, seeds):
    asked: set[int] = set()

    class Noted(HillClimber):
        def ask(self, k):
            asked.add(self._seed)
            return super().ask(k)

    monkeypatch.setattr(sys.modules[climb.__module__], "HillClimber", Noted)
    climb(searching(branching(), times * SECOND_ASCENT_EVALUATIONS))
    assert asked == seeds


def test_where_no_neighbour_is_better_it_ends():
    search = searching(Problem(chain(6), devices(1, 1)), 1_000_000)
    climb(search)
    assert search.budget.evaluations < 1000


def test_without_time_it_does_nothing():
    search = Search(branching(), budget=Budget(time_limit=0.0), threads=1)
    single(search)
    before = search.budget.evaluations
    climb(search)
    assert search.budget.evaluations == before


def test_a_plan_that_fits_replaces_one_that_does_not():
    search = searching(problem("tight"), 2000)
    assert not search.best.feasible
    climb(search)
    assert search.best.feasible


@pytest.mark.parametrize("rule", [single, heft])
def test_threads_change_nothing(rule):
    one, two = (
        searching(branching(), 20 * SECOND_ASCENT_EVALUATIONS, rule, threads) for threads in (1, 2)
    )
    climb(one)
    climb(two)
    assert one.best.value == two.best.value
    assert one.budget.evaluations == two.budget.evaluations


# Launches: seconds of a constant and of work, in equal parts; the second ascent then moves blocks
# that are balanced by work.
def launched(constant: float, slope: float) -> Problem:
    """Twelve ops in a row; each takes `constant` and a multiple of its FLOPs."""
    flops = [10**9 * (1 + i % 5) for i in range(12)]
    ops = [Op(f"{i}", seconds={"*": constant + slope * f}, flops=f) for i, f in enumerate(flops)]
    tensors = [Tensor(f"t{i}", i, 8, (i + 1,)) for i in range(len(ops) - 1)]
    return Problem(Graph("launched", tuple(ops), tuple(tensors)), devices(1, 1, bandwidth=1e9))


@pytest.mark.parametrize(
    ("constant", "slope", "dominate"), [(1.0, 1e-9, True), (0.5, 1e-9, False), (0.0, 1e-9, False)]
)
def test_launches_dominate_if_they_take_a_quarter(constant, slope, dominate):
    assert launches_dominate(launched(constant, slope)) == dominate


def test_seconds_that_do_not_follow_work_are_no_launches():
    assert not launches_dominate(launched(1.0, 0.0))
    assert not launches_dominate(branching())
    assert not launches_dominate(problem("tight"))


def test_a_step_of_launches_is_climbed_in_blocks_by_seconds_and_by_work(monkeypatch):
    weights = []

    def noted(of, chosen):
        weights.append(chosen)
        return op_weights(of, chosen)

    monkeypatch.setattr(sys.modules[climb.__module__], "op_weights", noted)
    climb(searching(launched(1.0, 1e-9), 1000))
    assert weights == ["seconds", "work"]
