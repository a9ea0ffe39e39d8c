"""Cuts of a line of units into one segment per device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs
from numpy.typing import NDArray

from situate.bounds.lower_bound import tightest_bound
from situate.data.arrays import Placement
from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers import solve
from situate.solvers.auto.construct.cuts import (
    by_bytes,
    by_seconds,
    follow,
    offer_level_cuts,
    offer_proportional_cuts,
)
from situate.solvers.budget import Budget
from situate.solvers.evaluate import evaluate
from situate.solvers.incumbent import Candidate
from situate.solvers.search import Search
from tests.solvers.families import chain, devices
from tests.solvers.training import gpus, training


def _search(problem: Problem) -> Search:
    return Search(problem, budget=Budget(evaluation_limit=100), threads=1)


def _roomy_cpu(gpu_memory: int, cpu_seconds: list[float], **op: int) -> Problem:
    """Ops without edges that hold 10 bytes each, on a small GPU and a CPU without a limit."""
    ops = tuple(
        Op(f"op{j}", seconds={"gpu": 1.0, "cpu": seconds}, persistent=10, **op)
        for j, seconds in enumerate(cpu_seconds)
    )
    pair = (Device("gpu0", memory=gpu_memory), Device("cpu0", kind="cpu"))
    return Problem(Graph("held", ops), Cluster("pair", pair, (Link("*", "*", 1.0),)))


# Cuts by seconds and by bytes, and what happens to a plan that does not fit.
def test_a_fast_device_gets_a_longer_piece() -> None:
    placement = by_seconds(Problem(chain(9), devices(1, 2)))
    assert placement.tolist() == [0] * 6 + [1] * 3


def test_a_roomy_device_gets_a_heavier_piece() -> None:
    cluster = Cluster(
        "unequal",
        (Device("big", kind="x1", memory=300), Device("small", kind="x1", memory=100)),
        (Link("*", "*", 1.0),),
    )
    placement = by_bytes(Problem(chain(8, persistent=10), cluster))
    assert placement.tolist() == [0] * 6 + [1] * 2


def test_what_one_device_alone_can_run_leaves_the_cut_as_it_is() -> None:
    ops = (*chain(8).ops, Op("only", seconds={"x1": 1e-9}))
    assert by_seconds(Problem(Graph("g", ops), devices(1, 2)))[:8].tolist() == [0] * 5 + [1] * 3


def test_a_unit_goes_where_it_may_run() -> None:
    ops = (*chain(4).ops[:3], Op("pinned", seconds={"*": 1.0}, device="d0"))
    problem = Problem(Graph("g", ops), devices(1, 1))
    assert by_seconds(problem)[3] == 0
    assert by_bytes(problem)[3] == 0


def test_where_one_device_cannot_hold_all_stages_that_fit_keep_their_backward_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Shares by bytes put the passes apart, and shares by seconds do once they have spilled."""
    problem = training(gpus(250, 700), persistent=50)
    search = _search(problem)
    offer, fitting = search.offer, list[Placement]()

    def watched(placement: Placement, order: NDArray[np.int32]) -> Candidate:
        result = offer(placement, order)
        fitting.extend([placement] * result.feasible)
        return result

    monkeypatch.setattr(search, "offer", watched)
    offer_proportional_cuts(search)
    assert any((placement == placement[::-1]).all() for placement in fitting)


def test_a_piece_of_bytes_goes_along_the_graph_however_ops_are_listed() -> None:
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}, persistent=10) for j in range(4))
    tensors = (Tensor("a", 2, 1, (0,)), Tensor("b", 0, 1, (3,)), Tensor("c", 3, 1, (1,)))
    placement = by_bytes(Problem(Graph("listed", ops, tensors), devices(1, 1, memory=100)))
    assert placement.tolist() == [0, 1, 0, 1]


def test_the_best_plan_so_far_is_made_to_fit() -> None:
    problem = _roomy_cpu(50, [9.0] * 8)
    search = _search(problem)
    search.offer(np.zeros(8, np.int32), np.arange(8, dtype=np.int32))
    offer_proportional_cuts(search)
    assert search.best is not None
    assert search.best.feasible


LAYERS = 24


def sharded_training(sizes: list[int], memory: int | None = None) -> Problem:
    """Parameters, which ops read forwards and backwards, and updates of each by its gradient."""
    n = len(sizes)
    grouped = [{"seconds": {"*": 0.1}, "group": f"layer{j}"} for j in range(n)]
    ops = [Op(f"weights{j}", persistent=b, **grouped[j]) for j, b in enumerate(sizes)]
    ops += [Op(f"forward{j}", seconds={"*": 1.0}) for j in range(n)]
    ops += [Op(f"backward{j}", seconds={"*": 2.0}) for j in reversed(range(n))]
    ops += [Op(f"update{j}", **grouped[j]) for j in reversed(range(n))]
    last = 3 * n - 1
    tensors = [
        Tensor(f"weights{j}", j, b // 4, (n + j, last - j), resident=True)
        for j, b in enumerate(sizes)
    ]
    tensors += [Tensor(f"kept{j}", n + j, 3, (n + j + 1, last - j)) for j in range(n - 1)]
    tensors += [Tensor(f"back{j}", j, 3, (j + 1,)) for j in range(2 * n - 1, last)]
    tensors += [Tensor(f"gradient{j}", last - j, sizes[j] // 4, (last + n - j,)) for j in range(n)]
    cluster = devices(1, 1, 1, 1, memory=memory, bandwidth=30.0)
    return Problem(Graph("training", tuple(ops), tuple(tensors)), cluster)


def by_layer(split: list[int]) -> np.ndarray:
    return np.array(split + split + split[::-1] + split[::-1], np.int32)


# Ops that hold nothing follow what they read.
def test_ops_follow_their_parameters():
    problem = sharded_training([5] * LAYERS)
    split = [0] * 16 + [1] * 8
    unknown = np.array(split + [1] * 2 * LAYERS + split[::-1], np.int32)
    assert follow(problem, unknown).tolist() == by_layer(split).tolist()


def test_without_parameters_ops_follow_the_last_input():
    ops = (Op("a", persistent=1), Op("b", persistent=1), Op("c"), Op("d"))
    ops = tuple(structs.replace(op, seconds={"*": 1.0}) for op in ops)
    tensors = (Tensor("s", 0, 1, (2,)), Tensor("t", 1, 1, (2,)), Tensor("u", 2, 1, (3,)))
    problem = Problem(Graph("g", ops, tensors), devices(1, 1))
    assert follow(problem, np.array([0, 1, 0, 0], np.int32)).tolist() == [0, 1, 1, 1]


def test_ops_stay_where_they_are_if_they_may_not_follow():
    problem = sharded_training([5] * LAYERS)
    ops = list(problem.graph.ops)
    ops[LAYERS] = structs.replace(ops[LAYERS], device="d1")
    pinned = Problem(replace(problem.graph, ops=tuple(ops)), problem.cluster)
    placement = by_layer([0] * LAYERS)
    placement[LAYERS : 3 * LAYERS] = 1
    followed = follow(pinned, placement)
    assert followed[LAYERS] == 1
    assert (followed[LAYERS + 1 :] == 0).all()


@pytest.mark.parametrize("seed", [0, 6, 7])
def test_auto_fills_devices_to_the_brim(seed):
    """Layers of any size in four pieces; half a per cent of memory is left."""
    sizes = np.random.default_rng(seed).integers(30, 200, LAYERS)
    pieces = ((np.cumsum(sizes) - sizes / 2) * 4 // sizes.sum()).astype(int).tolist()
    peak = evaluate(sharded_training(sizes.tolist()), by_layer(pieces)).schedule.peak.max()
    problem = sharded_training(sizes.tolist(), int(1.005 * peak))
    by_hand = evaluate(problem, by_layer(pieces))
    assert by_hand.feasible
    result = solve(problem, time_limit=None, evaluations=2000)
    assert result.feasible
    assert result.value <= by_hand.value


def offered(problem: Problem) -> Search:
    """A search that has heard of all on the first device, and then of cuts."""
    search = Search(
        problem, tightest_bound(problem).value, budget=Budget(evaluation_limit=1000), threads=1
    )
    search.offer(np.zeros(problem.n, np.int32), np.array(problem.graph.order, np.int32))
    offer_level_cuts(search)
    return search


def for_memory(*memory: int) -> Problem:
    return replace(training(gpus(*memory)), objective="memory")


# Segments whose devices are as full as one another, where memory is sought.
@pytest.mark.parametrize("devices", [2, 3, 4])
def test_peaks_are_level(devices: int) -> None:
    search = offered(for_memory(*[10**6] * devices))
    peak = search.incumbent.schedule.peak
    assert peak.max() < 1.35 * peak.min()
    assert search.incumbent.feasible


def test_a_device_of_little_memory_gets_no_more_than_it_holds() -> None:
    search = offered(for_memory(200, 30))
    assert search.incumbent.feasible
    assert search.incumbent.schedule.peak[1] <= 30 < search.incumbent.value


def test_a_plan_that_meets_the_bound_ends_it() -> None:
    search = offered(for_memory(10**6, 10**6))
    again = Search(
        search.problem, search.incumbent.value, budget=Budget(evaluation_limit=1000), threads=1
    )
    again.offer(search.incumbent.placement, search.incumbent.order)
    before = again.budget.evaluations
    offer_level_cuts(again)
    assert again.budget.evaluations == before


def test_it_is_never_above_stages_whose_ends_move() -> None:
    for memory in ((10**6, 10**6), (200, 30), (90, 60)):
        search = offered(for_memory(*memory))
        assert search.incumbent.value <= solve(search.problem, "pipeline").value


def test_other_objectives_and_single_devices_have_none() -> None:
    for problem in (training(gpus(100, 100)), for_memory(10**6)):
        assert len(offered(problem).history) == 1
