"""Bytes of tensors that every schedule holds at once."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from situate import _core
from situate.bounds.live import Live, takes_time
from situate.data.arrays import Ints
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.topology import edge_producers
from tests.oracle.problems import random_problem
from tests.solvers.families import apart, chain, devices, fork, graph


def live(problem: Problem, *ops: int, **work: int) -> int:
    """The least of all ops, or of some that are confined to a device."""
    mask = np.isin(np.arange(problem.n), ops) if ops else np.ones(problem.n, np.bool_)
    return Live(problem).least(mask, **work)


def on_one(small: Graph) -> Problem:
    return Problem(small, devices(1), "memory")


# Bytes that are live at once on one device.
def test_an_op_has_its_inputs_and_outputs_beside_it() -> None:
    assert live(on_one(chain(5, size=7, workspace=2))) == 16


def test_all_that_a_last_op_reads_is_live_at_once() -> None:
    assert live(on_one(fork(12, size=7))) == 70


def test_of_a_branch_the_smallest_tensor_is_live_beside_another_branch() -> None:
    """Sizes of the left branch 5, 3 and 6, of the right one 20 and 20: while the right one's second
    op runs, the left one is at its beginning, in the middle or at its end."""
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(6))
    left, right = [(0, 1, 5), (1, 2, 3), (2, 5, 6)], [(3, 4, 20), (4, 5, 20)]
    tensors = tuple(
        Tensor(f"t{i}", before, size, (after,))
        for i, (before, after, size) in enumerate([*left, *right])
    )
    branches = Graph("g", ops, tensors, control=((0, 3),))
    assert live(on_one(branches)) == 43


def test_an_output_is_held_to_the_end() -> None:
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(3))
    tensor = Tensor("kept", 0, 10, (), output=True)
    small = Graph("g", ops, (tensor, Tensor("t", 1, 4, (2,))), control=((0, 1),))
    assert live(on_one(small)) == 14


def test_a_resident_tensor_takes_nothing_at_home() -> None:
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(2))
    small = Graph("g", ops, (Tensor("t", 0, 10, (1,), resident=True),))
    assert live(on_one(small)) == 0


# Ops confined to some devices.
def test_ops_that_are_confined_hold_what_they_make_and_what_they_read() -> None:
    """Ops 1 and 3 of a chain: 3 receives the output of 2 and makes one of its own."""
    problem = on_one(chain(5, size=7, workspace=2))
    assert live(problem, 1, 3) == 16
    assert live(problem, 1) == 16
    assert live(problem, 4) == 9


def test_what_confined_ops_hand_one_another_is_live_on_the_way() -> None:
    """Op 0 makes a tensor that op 3 reads; 1 and 2 run in between."""
    between = graph(4, [(0, 1), (1, 2), (2, 3)], size=7)
    tensor = Tensor("kept", 0, 100, (3,))
    problem = on_one(Graph("g", between.ops, (*between.tensors, tensor)))
    assert live(problem, 0, 2, 3) == 114


def test_less_work_gives_fewer_bytes() -> None:
    """The first op that is looked at still counts the bytes that are live whatever has ended."""
    problem = on_one(fork(30, size=7))
    assert 0 < live(problem, work=1) <= live(problem) == 7 * 28


def test_an_op_without_seconds_counts_where_memory_is_counted_by_steps() -> None:
    small = fork(5, size=7, seconds=0.0)
    assert live(Problem(small, devices(1), "memory", "situate")) == 0  # type: ignore[arg-type]
    assert live(Problem(small, devices(1), "memory", "regal")) == 21  # type: ignore[arg-type]


def test_what_is_shorter_than_the_last_digit_of_a_clock_takes_no_time() -> None:
    problem = on_one(apart(3, seconds=[1.0, 1e-17, 0.0]))
    assert takes_time(problem).tolist() == [True, False, False]


# The bound holds for every order of tiny graphs; the core checks its input.
@pytest.mark.parametrize("chunk", range(4))
def test_some_op_needs_as_much_in_the_best_of_all_states(chunk: int) -> None:
    """Against the least live bytes over all orders while one op runs, for every op."""
    comparisons = 0
    for seed in range(chunk, 400, 4):
        problem = random_problem(seed)
        if problem.n > 6 or problem.rules.memory == "persistent":
            continue
        steps = problem.rules.memory == "step"
        counts = np.ones(problem.n, np.bool_) if steps else takes_time(problem)
        assert live(problem) == best_of_orders(problem)[counts].max(initial=0), seed
        comparisons += 1
    assert comparisons >= 10


def best_of_orders(problem: Problem) -> Ints:
    """(n,) the least that is live while an op runs, of all topological orders one after another."""
    least = np.full(problem.n, 2**62)
    edges = list(problem.graph.edges())
    for order in permutations(range(problem.n)):
        place = np.argsort(order)
        if all(place[before] < place[after] for before, after in edges):
            for op in range(problem.n):
                least[op] = min(least[op], _live_during(problem, place, op))
    return least


def _live_during(problem: Problem, place: Ints, op: int) -> int:
    total = int(problem.workspace[op])
    for tensor, producer in enumerate(problem.producer.tolist()):
        first, last = problem.consumer_start[tensor : tensor + 2]
        ends = [place[producer], *place[problem.consumers[first:last]]]
        until = problem.n if problem.output[tensor] else max(ends)
        if not problem.resident[tensor] and place[producer] <= place[op] <= until:
            total += int(problem.size[tensor])
    return total


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"orders": np.array([[0, 2, 1]], np.int32)}, "an order must be topological"),
        ({"orders": np.array([[0, 0, 1]], np.int32)}, "an order must be a permutation"),
        ({"orders": np.array([[0, 1, 7]], np.int32)}, "an order must be a permutation"),
        ({"orders": np.empty((0, 3), np.int32)}, "at least one order"),
        ({"before": np.array([0, 5], np.int32)}, "pairs of ops"),
        ({"size": np.array([1], np.int64)}, "arrays over tensors differ in length"),
        ({"size": np.array([1, -1], np.int64)}, "bytes"),
        ({"producer": np.array([0, 9], np.int32)}, "tensors and ops must be there"),
        ({"workspace": np.array([0, 0], np.int64)}, "arrays over ops differ in length"),
        ({"workspace": np.array([0, 0, -1], np.int64)}, "workspaces are 0 to"),
    ],
)
def test_the_core_refuses_what_is_no_graph(change: dict[str, NDArray[Any]], message: str) -> None:
    problem = on_one(chain(3, size=7))
    inputs = {
        "before": edge_producers(problem),
        "after": problem.consumers,
        "orders": np.array([[0, 1, 2]], np.int32),
        "size": problem.size,
        "producer": problem.producer,
        "workspace": problem.workspace,
    } | change
    with pytest.raises(ValueError, match=message):
        _core.bounds.least_live(
            _core.bounds.Dependencies(
                before=inputs["before"], after=inputs["after"], orders=inputs["orders"]
            ),
            _core.bounds.HeldTensors(
                size=inputs["size"],
                producer=inputs["producer"],
                edge_tensor=np.array([0, 1], np.int32),
                edge_consumer=problem.consumers,
                output=problem.output,
            ),
            workspace=inputs["workspace"],
            runs=np.ones(3, np.uint8),
            work=1000,
            seconds=1.0,
        )
