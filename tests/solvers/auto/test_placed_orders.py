"""Orders of a given placement that keep within memory."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

import numpy as np
import pytest
from msgspec import structs

import situate
from situate import _core
from situate.bench.families.pipelines import pipeline
from situate.bounds.lower_bound import lower_bound
from situate.data.problem import Problem
from situate.data.rules import Rules, find_rules
from situate.simulation.decoding import is_topological, scheduled
from situate.simulation.simulator import Simulator
from situate.solvers.auto.placed_orders import URGENCIES, list_pipelines, offer_placed_orders
from situate.solvers.budget import Budget
from situate.solvers.heuristics.pass_schedules import SCHEDULES
from situate.solvers.search import Search
from situate.solvers.slice_pipelines.offering import offer_slice_pipelines
from tests.oracle.problems import random_decision, random_problem
from tests.solvers.families import chain, devices
from tests.solvers.slice_pipelines.uniform import uniform

SIZES = [(stages, times * stages) for stages in (2, 3, 4, 8) for times in (2, 4)]


def begun(problem: Problem) -> Search:
    """With the one placement of a problem whose ops are pinned."""
    search = Search(
        problem, lower_bound(problem), budget=Budget(evaluation_limit=10_000), threads=1
    )
    search.offer(problem.allowed.argmax(axis=1)[problem.unit].astype(np.int32), order(problem))
    return search


def order(problem: Problem) -> np.ndarray:
    return np.array(problem.graph.order, np.int32)


def limited(problem: Problem, memory: int) -> Problem:
    """The problem on devices that hold so many bytes."""
    held = tuple(structs.replace(device, memory=memory) for device in problem.cluster.devices)
    return replace(problem, cluster=replace(problem.cluster, devices=held))


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(("stages", "batches"), SIZES)
def test_a_uniform_pipeline_is_optimal_in_the_memory_of_1f1b(
    stages: int, batches: int, times: int
) -> None:
    search = begun(pipeline(stages, batches, times * stages))
    offer_placed_orders(search)
    assert search.incumbent.feasible
    assert search.incumbent.value == 3 * batches + stages - 1
    assert search.proved()


def test_a_pipeline_by_hand_is_listed_anew() -> None:
    problem = uniform(4, 8, split=True)
    search = Search(problem, budget=Budget(evaluation_limit=10_000), threads=1)
    placements = offer_slice_pipelines(search, SCHEDULES["one_f_one_b"])
    assert search.incumbent.value == 30
    list_pipelines(search, placements)
    assert search.incumbent.value == 27


def test_what_keeps_a_device_busy_for_as_long_as_the_best_plan_is_not_listed() -> None:
    searches = [begun(pipeline(4, 8)) for _ in range(2)]
    alone = np.zeros(searches[0].problem.n, np.int32)
    for search, placements in zip(searches, ([], [alone]), strict=True):
        list_pipelines(search, placements)
    assert searches[0].budget.evaluations == searches[1].budget.evaluations


def test_auto_proves_a_pipeline_optimal_that_list_rules_do_not_fit_into_memory() -> None:
    problem = pipeline(8, 16, 8)
    assert not situate.solve(problem, "heft", evaluations=10).feasible
    assert situate.solve(problem, evaluations=2_000).optimal


@pytest.mark.parametrize("seed", range(20))
def test_stages_of_any_times_fit_wherever_one_micro_batch_does(seed: int) -> None:
    rng = random.Random(seed)
    stages, batches, memory = rng.randint(2, 6), rng.randint(1, 12), rng.randint(1, 6)
    times = {(kind, stage): rng.uniform(0, 2) for kind in "FBW" for stage in range(stages)}
    search = begun(pipeline(stages, batches, memory, lambda kind, stage: times[kind, stage]))
    offer_placed_orders(search)
    assert search.incumbent.feasible
    search.incumbent.schedule.verify(search.problem)


@pytest.mark.parametrize("seed", [1, 4, 8])
def test_annealing_improves_what_was_listed_and_keeps_within_memory(seed: int) -> None:
    """Unequal stages hold fewer activations than there are stages."""
    rng = random.Random(seed)
    times = {(kind, stage): rng.uniform(0.5, 1.5) for kind in "FBW" for stage in range(4)}
    problem = pipeline(4, 8, 3, lambda kind, stage: times[kind, stage])
    search = begun(problem)
    offer_placed_orders(search)
    found = situate.solve(problem, evaluations=20_000)
    assert found.feasible
    assert found.value < 0.98 * search.incumbent.value


def optimum(problem: Problem, stages: int) -> float:
    """The least makespan of two micro-batches that fits, of all sequences of all stages."""
    simulator, found = Simulator(problem), np.inf
    placement = problem.allowed.argmax(axis=1)[problem.unit].astype(np.int32)
    place = {op.name: j for j, op in enumerate(problem.graph.ops)}
    before = {
        (int(problem.producer[tensor]), int(reader))
        for tensor, (first, last) in enumerate(itertools.pairwise(problem.consumer_start))
        for reader in problem.consumers[first:last]
    }
    # The ops of a stage keep their order within each of the micro-batches: which comes next, then?
    turns = sorted(set(itertools.permutations([0, 0, 0, 1, 1, 1])))
    for taken in itertools.product(turns, repeat=stages):
        waits = TopologicalSorter({op: set[int]() for op in range(problem.n)})
        for producer, reader in before:
            waits.add(reader, producer)
        for stage, turn in enumerate(taken):
            kinds = [iter("FBW"), iter("FBW")]
            ops = [place[f"{next(kinds[batch])}{stage}.{batch}"] for batch in turn]
            for first, second in itertools.pairwise(ops):
                waits.add(second, first)
        try:
            listed = np.array(list(waits.static_order()), np.int32)
        except CycleError:  # stages that wait for one another
            continue
        schedule = scheduled(simulator, placement, listed, "serial")
        if not schedule.excess(problem):
            found = min(found, schedule.makespan)
    return found


@pytest.mark.parametrize("memory", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_two_micro_batches_are_optimal_by_all_that_stages_could_do(seed: int, memory: int) -> None:
    rng = random.Random(seed)
    times = {(kind, stage): float(rng.randint(1, 5)) for kind in "FBW" for stage in range(2)}
    problem = pipeline(2, 2, memory, lambda kind, stage: times[kind, stage])
    found = situate.solve(problem, evaluations=3_000)
    assert found.value == optimum(problem, 2)


def random_orders(seed: int) -> tuple[Problem, _core.search.PlacedOrders]:
    """Those of a random placement of a random problem, of overlapped transfers."""
    problem = random_problem(seed)
    rules = Rules("drawn", "overlapped", problem.rules.contention, memory=problem.rules.memory)
    problem = replace(problem, rules=rules)
    placement = random_decision(problem, seed).placement
    line = np.array(problem.depth_first, np.int32)
    return problem, _core.search.make_placed_orders(Simulator(problem).core, placement, line)


@pytest.mark.parametrize("seed", range(50))
def test_every_op_is_listed_once_behind_all_that_it_reads(seed: int) -> None:
    problem, orders = random_orders(seed)
    for urgency in URGENCIES:
        listed = orders.order(*urgency, np.zeros(problem.d, np.int64))
        assert sorted(listed.tolist()) == list(range(problem.n))
        assert is_topological(problem, listed)


@pytest.mark.parametrize("seed", range(50))
def test_one_device_never_exceeds_what_ops_take_in_turn(seed: int) -> None:
    """Nothing is sent, so that no device has to wait for room elsewhere."""
    rng = random.Random(seed)
    problem = pipeline(1, rng.randint(1, 12), rng.randint(1, 4))
    search = begun(problem)
    offer_placed_orders(search)
    assert search.incumbent.feasible


def test_reserved_bytes_are_left_free() -> None:
    problem = pipeline(4, 12, 4)
    placement = begun(problem).incumbent.placement
    simulator = Simulator(problem)
    orders = _core.search.make_placed_orders(simulator.core, placement, order(problem))
    for reserved in range(4):
        listed = orders.order(1, 2, np.full(4, reserved, np.int64))
        assert scheduled(simulator, placement, listed, "serial").peak.max() == 4 - reserved


def test_more_is_reserved_than_there_is_and_ops_run_in_turn() -> None:
    problem = pipeline(3, 5, 3)
    placement = begun(problem).incumbent.placement
    simulator = Simulator(problem)
    orders = _core.search.make_placed_orders(simulator.core, placement, order(problem))
    listed = orders.order(1, 2, np.full(3, 2**60, np.int64))
    assert scheduled(simulator, placement, listed, "serial").peak.tolist() == [1, 1, 1]


def test_what_does_not_fit_in_turn_is_told() -> None:
    problem = pipeline(2, 4, 1)
    placement = begun(problem).incumbent.placement
    assert _core.search.make_placed_orders(Simulator(problem).core, placement, order(problem)).fits
    little = limited(Problem(chain(4, size=10), devices(1)), 15)
    zeros = np.zeros(4, np.int32)
    assert not _core.search.make_placed_orders(Simulator(little).core, zeros, order(little)).fits


def test_blocking_transfers_are_left_alone() -> None:
    problem = replace(pipeline(2, 4, 1), rules=find_rules("regal"))
    search = begun(problem)
    before = search.budget.evaluations
    offer_placed_orders(search)
    assert search.budget.evaluations == before


@pytest.mark.parametrize("reserved", [[0], [0, -1], [0, 2**62 + 1]])
def test_bytes_that_cannot_be_reserved_are_refused(reserved: list[int]) -> None:
    problem = pipeline(2, 4, 1)
    placement = begun(problem).incumbent.placement
    orders = _core.search.make_placed_orders(Simulator(problem).core, placement, order(problem))
    with pytest.raises(ValueError, match="reserved of each device"):
        orders.order(1, 2, np.array(reserved, np.int64))
