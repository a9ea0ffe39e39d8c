"""Swaps of devices, and shifts at critical transfers."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from itertools import combinations

import numpy as np
import pytest
from msgspec import structs

from situate import solve, zoo
from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers.auto.improve.moves import (
    critical_transfers,
    move_critical,
    phase_lines,
    swap_devices,
    swapped,
    unlike_pairs,
)
from situate.solvers.budget import Budget
from situate.solvers.evaluate import evaluate
from situate.solvers.search import Search
from tests.oracle.problems import random_problem
from tests.solvers.families import chain, devices, graph

PIECES, LAYERS = 8, 32


def interleaved() -> Cluster:
    """Even devices are one node, odd ones another; each holds one piece of eight."""
    slow = Link("*", "*", 0.1)
    return Cluster(
        "nodes",
        tuple(Device(f"d{i}", kind="x1", memory=46) for i in range(PIECES)),
        (slow, *(Link(f"d{i}", f"d{j}", 100.0) for i in range(8) for j in range(i % 2, i, 2))),
    )


def pipeline(objective: str) -> Problem:
    """Forwards through layers of weights, and back through the activations of each layer."""
    n = 2 * LAYERS
    kept = [(layer, n - 1 - layer) for layer in range(LAYERS - 1)]
    passes = graph(n, [(op, op + 1) for op in range(n - 1)] + kept)
    ops = [
        structs.replace(op, persistent=9 if j < LAYERS else 0) for j, op in enumerate(passes.ops)
    ]
    return Problem(replace(passes, ops=tuple(ops)), interleaved(), objective)  # type: ignore[arg-type]


def in_turn(turn: list[int]) -> np.ndarray:
    """Equal pieces of the layers on the devices in this order."""
    there = np.repeat(np.array(turn, np.int32), LAYERS // PIECES)
    return np.concatenate((there, there[::-1]))


_ANYWHERE = Graph("g", tuple(Op(name, seconds={"*": 1.0}) for name in "ab"))
NODE_BY_NODE = in_turn([0, 2, 4, 6, 1, 3, 5, 7])


# Devices trade all they have where links or speeds make another order of pieces better.
@pytest.mark.parametrize("objective", ["time", "throughput"])
def test_auto_fills_one_node_before_the_other(objective):
    problem = pipeline(objective)
    by_hand = evaluate(problem, NODE_BY_NODE)
    assert by_hand.feasible
    result = solve(problem, time_limit=None, evaluations=4000)
    assert result.feasible
    assert result.value <= 1.01 * by_hand.value


def test_pieces_in_the_order_of_the_file_end_up_node_by_node():
    problem = pipeline("time")
    search = Search(problem, budget=Budget(evaluation_limit=100_000), threads=1)
    search.offer(in_turn(list(range(8))), np.array(problem.graph.order, np.int32))
    before = search.best.value
    swap_devices(search)
    assert before > 7 * 10
    assert search.best.value == pytest.approx(evaluate(problem, NODE_BY_NODE).value)


def test_it_takes_a_small_share_of_the_budget():
    problem = pipeline("time")
    search = Search(problem, budget=Budget(evaluation_limit=1000), threads=1)
    search.offer(in_turn(list(range(8))), np.array(problem.graph.order, np.int32))
    swap_devices(search)
    assert search.budget.evaluations <= 25


def test_units_trade_as_far_as_they_may():
    small = chain(4)
    pinned = structs.replace(small.ops[1], device="d0")
    graph = type(small)("small", (small.ops[0], pinned, *small.ops[2:]), small.tensors)
    problem = Problem(graph, devices(1, 1, 1))
    assert swapped(problem, np.array([0, 0, 1, 2], np.int32), 0, 1).tolist() == [1, 0, 0, 2]


def test_equal_devices_have_nothing_to_trade():
    assert not list(unlike_pairs(Problem(chain(4), devices(1, 1, 1))))
    assert list(unlike_pairs(Problem(chain(4), devices(1, 2, 1)))) == [(0, 1), (1, 2)]


def test_what_links_and_channels_join_is_not_equal():
    apart, joined = Link("*", "*", 1.0), Link("d0", "d1", 1.0, channel="bus")
    cluster = devices(1, 1, 1, 1)
    shared = Problem(chain(4), Cluster("c", cluster.devices, (apart, joined)))
    faster = Problem(chain(4), Cluster("c", cluster.devices, (apart, Link("d0", "d1", 2.0))))
    across = [(0, 2), (0, 3), (1, 2), (1, 3)]
    assert list(unlike_pairs(shared)) == list(unlike_pairs(faster)) == across


def test_devices_are_compared_with_one_of_every_kind(monkeypatch):
    compared: list[tuple[int, int]] = []

    def linked_alike(problem: Problem, a: int, b: int) -> bool:
        compared.append((a, b))
        return True

    module = import_module("situate.solvers.auto.improve.moves")
    monkeypatch.setattr(module, "_linked_alike", linked_alike)
    assert not list(unlike_pairs(Problem(chain(4), devices(*[1] * 64))))
    assert len(compared) == 63


def test_unlike_pairs_are_those_whose_trade_changes_the_problem():
    """On equal devices, but for one in some, with all kinds of links and channels."""
    alike = 0
    for seed in range(300):
        drawn = random_problem(seed).cluster
        equal = tuple(Device(name, memory=9) for name in drawn.names)
        mixed = (structs.replace(equal[0], memory=8 + seed % 2), *equal[1:])
        problem = Problem(_ANYWHERE, replace(drawn, devices=mixed))
        pairs = list(combinations(range(problem.d), 2))
        changes = [pair for pair in pairs if _changes(problem, *pair)]
        assert list(unlike_pairs(problem)) == changes, seed
        alike += len(changes) < len(pairs)
    assert alike > 100


def _changes(problem: Problem, a: int, b: int) -> bool:
    """True if any array of the problem differs once the two devices have changed places, but for
    the numbers of channels."""
    turn = np.arange(problem.d)
    turn[[a, b]] = b, a
    lines = (problem.capacity, problem.accelerators, *problem.allowed, *problem.seconds)
    squares = [table[turn][:, turn] for table in (problem.latency, problem.bandwidth)]
    became = dict[int, set[int]]()
    for old, new in zip(problem.channel.flat, problem.channel[turn][:, turn].flat, strict=True):
        became.setdefault(int(old), set()).add(int(new))
    return not (
        all(np.array_equal(line, line[turn]) for line in lines)
        and np.array_equal(squares[0], problem.latency)
        and np.array_equal(squares[1], problem.bandwidth)
        and all(len(channels) == 1 for channels in became.values())
    )


SIZES = (9, 9, 9, 9, 1, 9, 9)
"""Bytes of what each op of a chain hands on."""


def unit_chain(memory: int | None = None, sizes: tuple[int, ...] = SIZES) -> Problem:
    """Ops of a second, one after the other, on two GPUs with a byte a second between them."""
    ops = tuple(Op(f"op{j}", seconds={"gpu": 1.0}, persistent=1) for j in range(len(sizes) + 1))
    tensors = tuple(Tensor(f"t{j}", j, size, (j + 1,)) for j, size in enumerate(sizes))
    devices = (Device("a", memory=memory), Device("b", memory=memory))
    return Problem(Graph("chain", ops, tensors), Cluster("two", devices, (Link("*", "*", 1.0),)))


def searched(problem: Problem, placement: list[int], evaluations: int = 1000) -> Search:
    """A search that knows a plan."""
    search = Search(problem, budget=Budget(evaluation_limit=evaluations), threads=1)
    order = np.array(problem.graph.order, np.int32)
    search.offer(np.array(placement, np.int32), order, ["eager"])
    return search


def critical(problem: Problem, placement: list[int]) -> list[str]:
    """Names of the tensors that the critical transfers move."""
    result = searched(problem, placement).best
    assert result is not None
    transfers = critical_transfers(problem, result.schedule)
    return [problem.graph.tensors[result.schedule.tensor[k]].name for k in transfers]


# The critical path is shortened first.
def test_the_longest_critical_transfer_comes_first() -> None:
    assert critical(unit_chain(), [0, 0, 0, 0, 0, 1, 0, 0]) == ["t5", "t4"]


def test_what_nothing_waits_for_is_not_critical() -> None:
    short = Problem(
        Graph(
            "branches",
            tuple(Op(f"op{j}", seconds={"gpu": s}) for j, s in enumerate((1.0, 50.0, 1.0, 1.0))),
            (*(Tensor(f"t{j}", j, 5, (3,)) for j in (1, 2)), Tensor("t0", 0, 5, (1, 2))),
        ),
        unit_chain().cluster,
    )
    assert critical(short, [0, 0, 1, 0]) == []
    assert critical(short, [0, 1, 0, 0]) == ["t1", "t0"]


def test_a_transfer_that_holds_up_the_channel_is_critical() -> None:
    ops = tuple(Op(f"op{j}", seconds={"gpu": 1.0}) for j in range(4))
    tensors = (Tensor("large", 0, 20, (3,)), Tensor("small", 1, 1, (2,)))
    problem = Problem(Graph("queue", ops, tensors), unit_chain().cluster)
    assert critical(problem, [0, 0, 1, 0]) == ["small"]
    assert critical(problem, [0, 0, 1, 1]) == ["large", "small"]


def test_what_holds_up_a_device_is_critical() -> None:
    ops = tuple(Op(f"op{j}", seconds={"gpu": s}) for j, s in enumerate((1.0, 1.0, 30.0, 2.0)))
    tensors = (Tensor("t0", 0, 1, (1,)), Tensor("t3", 3, 1, (2,)))
    problem = Problem(Graph("busy", ops, tensors), unit_chain().cluster)
    assert critical(problem, [0, 1, 1, 1]) == ["t0"]


@pytest.mark.parametrize(
    ("sizes", "before", "after"),
    [
        (SIZES, [0, 0, 0, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 1, 1, 1]),
        (SIZES[::-1], [0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1, 1]),
    ],
)
def test_a_border_is_shifted_past_what_no_step_alone_gets_past(
    sizes: tuple[int, ...], before: list[int], after: list[int]
) -> None:
    search = searched(unit_chain(24, sizes), before)
    move_critical(search, phase_lines(search.problem))
    assert search.best is not None
    assert search.best.placement.tolist() == after
    assert search.best.value == 8 + 1


def test_there_is_a_line_of_all_units_and_one_of_each_phase() -> None:
    phases = ["forward", "forward", "backward", "update"]
    ops = tuple(Op(f"op{j}", phase=phase) for j, phase in enumerate(phases))
    tensors = tuple(Tensor(f"t{j}", j, 1, (j + 1,)) for j in range(3))
    whole, *parts = phase_lines(Problem(Graph("step", ops, tensors), unit_chain().cluster))
    assert sorted(whole.tolist()) == [0, 1, 2, 3]
    assert [part.tolist() for part in parts] == [[0, 1], [2], [3]]


def test_only_a_plan_that_fits_is_shifted() -> None:
    search = searched(unit_chain(memory=2), [0, 0, 0, 1, 1, 1, 1, 1])
    before = search.budget.evaluations
    move_critical(search, phase_lines(search.problem))
    assert search.budget.evaluations == before


def test_a_share_of_the_budget_ends_it() -> None:
    search = searched(unit_chain(24), [0, 0, 0, 0, 0, 1, 1, 1], evaluations=30)
    move_critical(search, phase_lines(search.problem))
    assert search.budget.evaluations <= 1 + 0.1 * 30


def test_auto_spares_a_full_gpu_a_transfer_of_12_ms() -> None:
    """ResNet-50 where the larger GPU holds nine tenths of it: without critical moves 86.8 ms."""
    preset = Cluster.preset("unequal-24-12")
    sizes = dict(zip(preset.names, (2_780_000_000, 1_390_000_000), strict=False))
    devices = tuple(structs.replace(d, memory=sizes.get(d.name, d.memory)) for d in preset.devices)
    problem = Problem(zoo.load("resnet50"), replace(preset, devices=devices))
    assert solve(problem, evaluations=20_000).makespan < 0.082
