"""Orders of ops for a placement."""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import permutations, product

import numpy as np
import pytest
from msgspec import structs

import situate
from situate import _core
from situate.bench.families.pipelines import pipeline
from situate.bounds.lower_bound import lower_bound
from situate.data.cluster import Cluster
from situate.data.core_problem import core_problem
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.rules import Rules, find_rules
from situate.data.topology import places, topological_by
from situate.data.tree_order import tree_order
from situate.simulation.decoding import decode, is_topological, scheduled
from situate.simulation.simulator import Simulator
from situate.solvers import solve
from situate.solvers.auto.construct import construct
from situate.solvers.auto.orders import (
    URGENCIES,
    by_rank,
    bytes_in_use,
    frugal_order,
    list_pipelines,
    offer_placed_orders,
    offer_regrouped,
)
from situate.solvers.budget import Budget
from situate.solvers.heuristics.fills import topological
from situate.solvers.heuristics.pass_schedules import SCHEDULES
from situate.solvers.search import Search
from situate.solvers.slice_pipelines.offering import offer_slice_pipelines
from situate.zoo import load
from tests.data.test_tree_order import tree
from tests.oracle.problems import random_decision, random_problem
from tests.solvers.exhaustive import optimum
from tests.solvers.families import chain, devices, graph, layered
from tests.solvers.slice_pipelines.uniform import uniform


def ranked(problem: Problem) -> np.ndarray:
    return by_rank(Search(problem, budget=Budget(evaluation_limit=10), threads=1))


def late(pinned: tuple[str | None, ...] = (None, None, None)) -> Problem:
    """Two ops of a second, of which the graph lists that first which nothing waits for."""
    waiting = graph(3, [(1, 2)], size=0, seconds=[1.0, 1.0, 5.0])
    ops = [structs.replace(op, device=to) for op, to in zip(waiting.ops, pinned, strict=True)]
    return Problem(replace(waiting, ops=tuple(ops)), devices(1, 1))


# By upward rank what the longest rest of the step waits for goes first.
def test_the_longest_rest_goes_first() -> None:
    assert ranked(late()).tolist() == [1, 2, 0]


def test_where_nothing_tells_them_apart_the_graphs_order_holds() -> None:
    nothing_to_do = Problem(chain(5, seconds=0.0, size=0), devices(1))
    assert ranked(nothing_to_do).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("seed", range(50))
def test_it_is_topological(seed: int) -> None:
    problem = random_problem(seed)
    place = np.argsort(ranked(problem))
    assert all(place[before] < place[after] for before, after in problem.graph.edges())


def test_auto_hears_its_rules_plans_by_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the devices where they have to be, only another order is sooner; these rules know none."""
    for rule in ("heft", "etf"):
        monkeypatch.setattr(sys.modules[construct.__module__], rule, topological)
    result = solve(late(pinned=("d0", "d0", "d1")), time_limit=None, evaluations=8)
    assert result.value == 6.0


def alone(small: Graph) -> Problem:
    return Problem(small, devices(1), "memory")


def heavy_path_orders(problem: Problem) -> list[np.ndarray]:
    core = core_problem(problem)
    return [_core.search.heavy_path_order(core, backwards) for backwards in (False, True)]


def post_orders(op: int, inputs: list[list[int]]) -> Iterator[list[int]]:
    """All orders of the tree that ends at an op in which its parts do not take turns."""
    for turn in permutations(inputs[op]):
        for parts in product(*(list(post_orders(subtree, inputs)) for subtree in turn)):
            yield [*(op_of_part for part in parts for op_of_part in part), op]


def plain_tree(n: int, seed: int) -> tuple[Problem, list[list[int]]]:
    """A tree of ops, and the inputs of each."""
    draw = np.random.default_rng(seed)
    readers = [int(draw.integers(j + 1, n)) for j in range(n - 1)]
    ops = tuple(
        Op(f"op{j}", seconds={"*": 1.0}, workspace=int(draw.integers(0, 9))) for j in range(n)
    )
    sizes = draw.integers(0, 20, n - 1).tolist()
    tensors = tuple(Tensor(f"t{j}", j, sizes[j], (readers[j],)) for j in range(n - 1))
    inputs = [[j for j in range(n - 1) if readers[j] == op] for op in range(n)]
    return alone(Graph("tree", ops, tensors)), inputs


# For memory the order of least on one device is taken.
@pytest.mark.parametrize("seed", range(30))
def test_it_is_known_what_an_order_needs(seed: int) -> None:
    drawn = random_problem(seed)
    problem = alone(layered(4, 3, seed, workspace=seed % 3) if seed % 2 else tree(9, seed))
    for order in (problem.depth_first, np.array(problem.graph.order, np.int32)):
        schedule = decode(problem, np.zeros(problem.n, np.int32), order, "serial")
        assert bytes_in_use(problem, order) == schedule.peak[0] - problem.persistent.sum()
    assert bytes_in_use(drawn, drawn.depth_first) >= 0


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_least_memory_is_taken(seed: int) -> None:
    for problem in (alone(layered(5, 4, seed)), alone(tree(40, seed))):
        as_tree = topological_by(problem, places(tree_order(problem).order))
        orders = [problem.depth_first, *heavy_path_orders(problem), as_tree]
        result = frugal_order(Search(problem, budget=Budget(evaluation_limit=9)))
        assert is_topological(problem, result)
        assert bytes_in_use(problem, result) == min(bytes_in_use(problem, o) for o in orders)


def test_without_time_it_is_not_that_of_a_tree() -> None:
    problem = alone(tree(40, 1))
    as_tree = bytes_in_use(problem, tree_order(problem).order)
    assert (
        bytes_in_use(problem, frugal_order(Search(problem, budget=Budget(evaluation_limit=9))))
        == as_tree
    )
    assert (
        bytes_in_use(problem, frugal_order(Search(problem, budget=Budget(time_limit=0.0))))
        > as_tree
    )


@pytest.mark.parametrize("seed", range(40))
def test_heavy_paths_give_topological_orders(seed: int) -> None:
    problem = random_problem(seed)
    assert all(is_topological(problem, order) for order in heavy_path_orders(problem))


@pytest.mark.parametrize("seed", range(30))
def test_in_a_tree_nothing_better_goes_part_by_part(seed: int) -> None:
    problem, inputs = plain_tree(7, seed)
    best = min(
        bytes_in_use(problem, np.array(order)) for order in post_orders(problem.n - 1, inputs)
    )
    assert bytes_in_use(problem, heavy_path_orders(problem)[0]) == best


def test_what_falls_most_goes_first() -> None:
    """A light part that is made first waits beside the heavy one."""
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(4))
    light_first = (Tensor("light", 0, 2, (3,)), Tensor("a", 1, 9, (2,)), Tensor("b", 2, 1, (3,)))
    problem = alone(Graph("two parts", ops, light_first))
    assert heavy_path_orders(problem)[0].tolist() == [1, 2, 0, 3]


def test_backwards_what_falls_most_from_the_end_on_comes_last() -> None:
    """The same graph turned round: early inputs are read before the heavy part is made."""
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(4))
    tensors = (Tensor("b", 0, 1, (1,)), Tensor("light", 0, 2, (3,)), Tensor("a", 1, 9, (2,)))
    problem = alone(Graph("two parts", ops, tensors))
    assert heavy_path_orders(problem)[1].tolist() == [0, 3, 1, 2]


def regrouped(problem: Problem, order: np.ndarray, target: int = 0, sets: int = 20_000):
    core = core_problem(problem)
    return _core.search.regrouped_order(core, order, target=target, sets=sets, seconds=math.inf)


def in_program_order(problem: Problem) -> np.ndarray:
    return np.array(problem.graph.order, np.int32)


def branches(count: int) -> Problem:
    """Parts that meet in the end; each makes nine bytes and keeps one. Ops of one kind come
    first, as layers do in an unrolled network."""
    n = 2 * count + 1
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(n))
    wide = [Tensor(f"wide{j}", j, 9, (count + j,)) for j in range(count)]
    narrow = [Tensor(f"narrow{j}", count + j, 1, (n - 1,)) for j in range(count)]
    return alone(Graph("branches", ops, (*wide, *narrow)))


# Orders regrouped use no more memory than before, and parts are put in their best order.
@pytest.mark.parametrize("seed", range(40))
def test_it_is_topological_and_uses_no_more(seed: int) -> None:
    problem = random_problem(seed) if seed % 2 else alone(layered(30, 6, seed))
    for before in (in_program_order(problem), problem.depth_first):
        after = regrouped(problem, before)
        assert is_topological(problem, after)
        assert bytes_in_use(problem, after) <= bytes_in_use(problem, before)


@pytest.mark.parametrize("seed", range(20))
def test_few_ops_come_in_their_best_order(seed: int) -> None:
    problem = alone(layered(3, 2, seed, workspace=seed % 4) if seed % 2 else tree(7, seed))
    result = bytes_in_use(problem, regrouped(problem, in_program_order(problem)))
    assert result + problem.persistent.sum() == optimum(problem)


@pytest.mark.parametrize("count", [20, 100])
def test_parts_of_any_length_are_regrouped(count: int) -> None:
    """From all at once to one after the other."""
    problem = branches(count)
    assert bytes_in_use(problem, in_program_order(problem)) == 9 * count + 1
    assert bytes_in_use(problem, regrouped(problem, in_program_order(problem))) == count + 9


def test_it_ends_where_few_enough_are_in_use() -> None:
    problem = branches(100)
    order = in_program_order(problem)
    enough = bytes_in_use(problem, order)
    assert np.array_equal(regrouped(problem, order, target=enough), order)
    assert np.array_equal(regrouped(problem, order, sets=0), order)


def test_an_order_that_is_none_is_refused() -> None:
    problem = branches(3)
    with pytest.raises(ValueError, match="order"):
        regrouped(problem, in_program_order(problem)[::-1].copy())


def test_auto_certifies_a_network_that_needs_another_order() -> None:
    cluster = Cluster.preset("a100-pcie-4")
    device = structs.replace(cluster.devices[0], memory=None)
    one = replace(cluster, devices=(device,), links=())
    result = solve(Problem(load("cifar_cnn"), one, "memory"), time_limit=None, evaluations=30)
    assert result.optimal
    result.schedule.verify(result.problem)


def test_where_a_search_for_time_fits_nothing_the_order_is_regrouped() -> None:
    problem = branches(100)
    small = replace(problem, objective="time", cluster=devices(1, memory=109))
    search = Search(small, budget=Budget(evaluation_limit=20))
    search.offer(np.zeros(small.n, np.int32), in_program_order(small))
    assert not search.incumbent.feasible
    offer_regrouped(search)
    assert search.incumbent.feasible


def test_plans_on_several_devices_are_tried_in_the_regrouped_order() -> None:
    problem = replace(branches(100), cluster=devices(1, 1))
    search = Search(problem, budget=Budget(evaluation_limit=20))
    halves = np.repeat([0, 1], [100, 101]).astype(np.int32)
    with search.trying(in_program_order(problem)):
        search.offer(halves, in_program_order(problem))
        offer_regrouped(search)
        assert bytes_in_use(problem, search.second_order) == 109


def test_where_parameters_alone_count_there_is_nothing_to_do() -> None:
    problem = replace(branches(9), rules="dnn-partitioning")
    search = Search(problem, budget=Budget(evaluation_limit=20))
    search.offer(np.zeros(problem.n, np.int32), in_program_order(problem))
    before = search.budget.evaluations
    offer_regrouped(search)
    assert search.budget.evaluations == before


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
    limited = tuple(structs.replace(device, memory=memory) for device in problem.cluster.devices)
    return replace(problem, cluster=replace(problem.cluster, devices=limited))


# Orders of a given placement that keep within memory.
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
    result = situate.solve(problem, evaluations=20_000)
    assert result.feasible
    assert result.value < 0.98 * search.incumbent.value


def pipeline_optimum(problem: Problem, stages: int) -> float:
    """The least makespan of two micro-batches that fits, of all sequences of all stages."""
    simulator, result = Simulator(problem), np.inf
    placement = problem.allowed.argmax(axis=1)[problem.unit].astype(np.int32)
    place = {op.name: j for j, op in enumerate(problem.graph.ops)}
    before = {
        (int(problem.producer[tensor]), int(reader))
        for tensor, (first, last) in enumerate(itertools.pairwise(problem.consumer_start))
        for reader in problem.consumers[first:last]
    }
    # The ops of a stage keep their order within each of the micro-batches: which comes next, then?
    turns = sorted(set(itertools.permutations([0, 0, 0, 1, 1, 1])))
    for choice in itertools.product(turns, repeat=stages):
        waits = TopologicalSorter({op: set[int]() for op in range(problem.n)})
        for producer, reader in before:
            waits.add(reader, producer)
        for stage, turn in enumerate(choice):
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
            result = min(result, schedule.makespan)
    return result


@pytest.mark.parametrize("memory", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_two_micro_batches_are_optimal_by_all_that_stages_could_do(seed: int, memory: int) -> None:
    rng = random.Random(seed)
    times = {(kind, stage): float(rng.randint(1, 5)) for kind in "FBW" for stage in range(2)}
    problem = pipeline(2, 2, memory, lambda kind, stage: times[kind, stage])
    result = situate.solve(problem, evaluations=3_000)
    assert result.value == pipeline_optimum(problem, 2)


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
    for urgency, patience in product(URGENCIES, (0.0, 0.5)):
        listed = orders.order(*urgency, np.zeros(problem.d, np.int64), patience)
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


@pytest.mark.parametrize(("seconds", "is_patient"), [(0.5, True), (1.5, False)])
def test_a_patient_device_waits_for_an_op_whose_input_is_on_its_way(
    seconds: float, is_patient: bool
) -> None:
    """`aside` could start, and takes two seconds; `next`, which another device waits for, has its
    input after a transfer of these seconds."""
    names = ("first", "next", "last", "aside")
    ops = tuple(Op(name, seconds={"*": 2.0}) for name in names)
    tensors = (Tensor("t0", 0, 1, (1,)), Tensor("t1", 1, 1, (2,)), Tensor("t2", 3, 1, ()))
    graph = Graph("aside", (*ops, Op("start", seconds={"*": 2.0})), tensors)
    problem = Problem(graph, devices(1, 1, bandwidth=1 / seconds))
    placement = np.array([0, 1, 0, 1, 1], np.int32)
    line = np.array([4, 0, 1, 2, 3], np.int32)
    orders = _core.search.make_placed_orders(Simulator(problem).core, placement, line)
    listed = orders.order(1, 0, np.zeros(2, np.int64), 0.5).tolist()
    assert (listed.index(1) < listed.index(3)) == is_patient


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
