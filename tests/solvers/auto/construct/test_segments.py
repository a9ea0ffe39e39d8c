"""Segments of the network that fit memory."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs
from msgspec.structs import replace

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.data.topology import folded_order
from situate.solvers.auto.construct.segments import (
    offer_memory_fits,
    offer_segments,
    outgrown,
)
from situate.solvers.budget import Budget
from situate.solvers.line_cut import cut, live_bytes
from situate.solvers.search import Search
from tests.solvers.training import LAYERS, gpus, training


def offered(problem: Problem, first: np.ndarray) -> Search:
    """A search that has heard of a placement, and then of pieces."""
    search = Search(problem, budget=Budget(evaluation_limit=1000), threads=1)
    search.offer(first.astype(np.int32), np.array(problem.graph.order, np.int32))
    offer_memory_fits(search)
    return search


# Pieces that fit where activations, and not parameters, fill the devices.
@pytest.mark.parametrize("memory", [(60, 40), (40, 60), (40, 40, 40)])
def test_pieces_fit_that_no_device_could_hold_together(memory: tuple[int, ...]) -> None:
    problem = training(gpus(*memory))
    search = offered(problem, np.zeros(problem.n))
    assert search.best is not None
    assert search.best.feasible
    search.best.schedule.verify(problem)


def test_a_piece_shrinks_that_is_fuller_than_its_bytes_said() -> None:
    whole = training(gpus(40, 40))
    read_once = [replace(t, consumers=t.consumers[:1]) for t in whole.graph.tensors[: LAYERS // 2]]
    tensors = (*read_once, *whole.graph.tensors[LAYERS // 2 :])
    problem = Problem(Graph("half", whole.graph.ops, tensors), whole.cluster)
    line, order = folded_order(problem), np.array(problem.graph.order, np.int32)
    first = cut(problem, [0, 1], line, live_bytes(problem), np.ones(2))
    assert (
        not Search(problem, budget=Budget(evaluation_limit=10), threads=1)
        .offer(first, order)
        .feasible
    )
    search = offered(problem, np.zeros(problem.n))
    assert search.best is not None
    assert search.best.feasible


def test_what_no_cut_makes_fit_is_mended() -> None:
    whole = training(gpus(70, 50))
    tensors = list(whole.graph.tensors)
    tensors[3] = replace(tensors[3], size=30)
    problem = Problem(Graph("uneven", whole.graph.ops, tuple(tensors)), whole.cluster)
    search = offered(problem, np.zeros(problem.n))
    assert search.best is not None
    assert search.best.feasible


def test_a_cpu_that_holds_nothing_up_is_left_working() -> None:
    whole = training(gpus(1000, 1000, cpu=True))
    load = Op("load", phase="forward", seconds={"cpu": 3.0})
    problem = Problem(Graph("g", (*whole.graph.ops, load), whole.graph.tensors), whole.cluster)
    placement = np.array([0] * 2 * LAYERS + [2])
    assert offered(problem, placement).budget.evaluations == 2


def test_what_keeps_a_cpu_working_gives_way_to_pieces() -> None:
    problem = training(gpus(60, 40, cpu=True))
    search = offered(problem, np.full(problem.n, 2))
    assert search.best is not None
    assert search.best.value < 2 * LAYERS + 1


def test_what_fits_on_accelerators_is_left_alone() -> None:
    problem = training(gpus(1000, 1000))
    assert offered(problem, np.zeros(problem.n)).budget.evaluations == 2


def test_the_end_of_a_line_that_the_smaller_device_can_hold_goes_there() -> None:
    """The first layer fits on the larger device alone, which is listed last."""
    whole = training(gpus(55, 150))
    tensors = (replace(whole.graph.tensors[0], size=60), *whole.graph.tensors[1:])
    problem = Problem(Graph("heavy head", whole.graph.ops, tensors), whole.cluster)
    search = offered(problem, np.zeros(problem.n))
    assert search.best is not None
    assert search.best.feasible
    assert search.best.placement[0] == 1


def test_devices_of_which_one_is_slower_or_smaller_are_not_alike() -> None:
    """Two cuts that cannot fit for devices that are alike, and as many again for others."""
    tight = [
        offered(training(gpus(*memory)), np.zeros(16)).budget.evaluations
        for memory in ((6, 6), (6, 5))
    ]
    assert tight[0] < tight[1]


def test_more_than_all_accelerators_hold_is_not_cut() -> None:
    problem = training(gpus(60, 40, cpu=True), persistent=20)
    assert offered(problem, np.full(problem.n, 2)).budget.evaluations == 2


def test_what_one_accelerator_alone_could_not_hold_is_cut() -> None:
    problem = training(gpus(150, 110, cpu=True), persistent=10)
    search = offered(problem, np.full(problem.n, 2))
    assert search.best is not None
    assert search.best.value < 2 * LAYERS + 1


def test_where_persistent_bytes_alone_count_there_is_nothing_to_fit() -> None:
    whole = training(gpus(60, 40), persistent=5)
    problem = Problem(whole.graph, whole.cluster, "throughput", RULES["dnn-partitioning"])
    assert offered(problem, np.zeros(problem.n)).budget.evaluations == 2


def test_one_order_is_enough_where_it_ends_the_search() -> None:
    problem = training(gpus(60, 50))
    search = Search(problem, budget=Budget(evaluation_limit=2), threads=1)
    search.offer(np.zeros(problem.n, np.int32), np.array(problem.graph.order, np.int32))
    offer_memory_fits(search)
    assert search.budget.evaluations <= 4


def test_pieces_are_offered_also_to_devices_whose_memory_has_no_limit() -> None:
    """Their capacities add up to more than 64 bits hold."""
    devices = (Device("gpu0"), Device("gpu1"), Device("cpu", kind="cpu"))
    problem = training(Cluster("unlimited", devices, (Link("*", "*", 1e9),)))
    search = offered(problem, np.full(problem.n, 2))
    assert search.best is not None
    assert set(search.best.placement.tolist()) == {0, 1}


TWO_SPEED_LAYERS = 20


def two_speed_training(memory: int, kept: dict[int, int] | None = None, small: int = 80) -> Problem:
    """Layers that take a second each way on the fast GPU and three on the slow one, and keep a byte
    each, or so many: the second most, unless others are told."""
    phases = ["forward"] * TWO_SPEED_LAYERS + ["backward"] * TWO_SPEED_LAYERS
    seconds = {"x1": 1.0, "x2": 3.0}
    ops = [Op(f"op{j}", phase=phase, seconds=seconds) for j, phase in enumerate(phases)]
    last = 2 * TWO_SPEED_LAYERS - 1
    size = dict.fromkeys(range(TWO_SPEED_LAYERS), 1) | (kept or {1: 50})
    tensors = [Tensor(f"t{j}", j, size[j], (j + 1, last - j)) for j in range(TWO_SPEED_LAYERS - 1)]
    tensors += [Tensor(f"g{j}", j, 1, (j + 1,)) for j in range(TWO_SPEED_LAYERS - 1, last)]
    devices = Device("big", kind="x1", memory=memory), Device("small", kind="x2", memory=small)
    return Problem(
        Graph("training", tuple(ops), tuple(tensors)),
        Cluster("unequal", devices, (Link("*", "*", 1e4),)),
    )


def segments_offered(problem: Problem, evaluations: int = 10_000) -> Search:
    search = Search(problem, budget=Budget(evaluation_limit=evaluations), threads=1)
    search.offer(np.ones(problem.n, np.int32), np.array(problem.graph.order, np.int32))
    if outgrown(search):
        offer_segments(search)
    return search


# The rest that the fastest device cannot hold goes where that costs least.
def test_what_keeps_most_bytes_goes_to_the_slow_device() -> None:
    search = segments_offered(two_speed_training(60))
    assert search.best is not None
    assert search.best.feasible
    assert 0 < np.count_nonzero(search.best.placement) <= 2
    assert search.best.value < 2 * TWO_SPEED_LAYERS + 5
    assert search.budget.evaluations < 400


def test_where_nothing_else_fits_a_stretch_may_be_most_of_the_network() -> None:
    ends, middle = {0: 100, TWO_SPEED_LAYERS - 2: 100}, {3: 300, TWO_SPEED_LAYERS - 5: 300}
    search = segments_offered(two_speed_training(250, ends | middle, small=650), 1600)
    assert search.best is not None
    assert search.best.feasible


def test_nothing_is_offered_where_the_fast_device_holds_all() -> None:
    assert segments_offered(two_speed_training(1000)).budget.evaluations == 3


def test_a_share_of_the_budget_ends_it() -> None:
    assert segments_offered(two_speed_training(60), 100).budget.evaluations < 40


def test_it_is_for_the_shortest_step() -> None:
    problem = two_speed_training(60)
    loads = Problem(problem.graph, problem.cluster, "throughput")
    assert segments_offered(loads).budget.evaluations == 2


@pytest.mark.filterwarnings("error")
def test_a_device_that_can_run_nothing_is_no_division_by_zero() -> None:
    problem = two_speed_training(60)
    ops = tuple(structs.replace(op, seconds={"x1": 1.0}) for op in problem.graph.ops)
    graph = Graph("training", ops, problem.graph.tensors)
    search = Search(Problem(graph, problem.cluster), budget=Budget(evaluation_limit=100), threads=1)
    search.offer(np.zeros(len(ops), np.int32), np.array(graph.order, np.int32))
    offer_segments(search)
    assert search.best is not None
    assert not search.best.feasible
