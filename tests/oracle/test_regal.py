"""Rules `regal` are the performance model of REGAL's A.4, to the letter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.schedule.schedule import Schedule
from situate.simulation.simulator import Simulator
from tests.oracle.problems import random_decision, random_problem
from tests.oracle.regal import Item, Model, Send

CHUNKS, CHUNK = 10, 150


def _problem(seed: int) -> Problem:
    """A random problem that A.4 has words for: no bytes but those of tensors, and no transfer that
    does not depend on a bandwidth."""
    drawn = random_problem(seed)
    plain = {"persistent": 0, "workspace": 0}
    ops = tuple(structs.replace(op, **plain) for op in drawn.graph.ops)
    tensors = tuple(
        structs.replace(tensor, seconds=None, resident=False) for tensor in drawn.graph.tensors
    )
    devices = tuple(structs.replace(device, memory=None) for device in drawn.cluster.devices)
    graph = replace(drawn.graph, ops=ops, tensors=tensors)
    return Problem(graph, replace(drawn.cluster, devices=devices), rules="regal")


def _items(problem: Problem, schedule: Schedule) -> list[Item]:
    """The schedule's total order."""
    moves = zip(schedule.tensor.tolist(), schedule.target.tolist(), strict=True)
    items = [*range(problem.n), *(Send(*move) for move in moves)]
    return [items[item] for item in schedule.sequence.tolist()]


def _model(problem: Problem, placement: np.ndarray) -> Model:
    seconds = problem.seconds[np.arange(problem.n), placement].tolist()
    return Model(problem.graph, problem.cluster, placement.tolist(), seconds)


def _chromosome(problem: Problem, seed: int) -> Any:
    """A placement, priorities of ops and of transfers, with ties in some."""
    rng = np.random.default_rng(seed)
    shapes = problem.n, (len(problem.size), problem.d)
    digits = int(rng.choice([1, 7]))
    priorities = [rng.random(shape).round(digits).astype(np.float32) for shape in shapes]
    return random_decision(problem, seed).placement, *priorities


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_serial_decoder_is_the_papers_from_chromosome_to_memory_and_runtime(chunk: int) -> None:
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        problem = _problem(seed)
        placement, of_ops, of_transfers = _chromosome(problem, seed)
        schedule = Simulator(problem).schedule(placement, of_ops, of_transfers, "serial")
        model = _model(problem, placement)
        order = model.schedule(of_ops.tolist(), of_transfers.tolist())
        assert _items(problem, schedule) == order, seed
        assert schedule.peak.tolist() == model.peak_memory(order), seed
        assert schedule.makespan == model.runtime(order), seed


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_eager_decoder_makes_a_schedule_that_the_paper_times_alike(chunk: int) -> None:
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        problem = _problem(seed)
        schedule = Simulator(problem).schedule(*_chromosome(problem, seed), "eager")
        model, order = _model(problem, schedule.placement), _items(problem, schedule)
        assert schedule.peak.tolist() == model.peak_memory(order), seed
        assert schedule.makespan == model.runtime(order), seed


def _two_chains() -> Problem:
    """a makes ten bytes for c, b ten for d; nothing takes time."""
    ops = tuple(Op(name, seconds={"*": 0.0}) for name in "abcd")
    tensors = (Tensor("ac", 0, 10, (2,)), Tensor("bd", 1, 10, (3,)))
    return Problem(Graph("chains", ops, tensors), Cluster.identical(1), rules="regal")


@pytest.mark.parametrize("decoder", ["serial", "eager"])
@pytest.mark.parametrize(("order", "peak"), [("acbd", 10), ("bdac", 10), ("abcd", 20)])
def test_memory_follows_the_order_where_nothing_takes_time(
    order: str, peak: int, decoder: Any
) -> None:
    priority = np.array([-order.index(op) for op in "abcd"], np.float32)
    problem = _two_chains()
    schedule = Simulator(problem).schedule(np.zeros(4, np.int32), priority, decoder=decoder)
    assert schedule.sequence.tolist() == ["abcd".index(op) for op in order]
    assert schedule.peak.tolist() == [peak]
    schedule.verify(problem)


def _fork(control: bool) -> Problem:
    """a, of a second, then b and c, of one each; c waits for a by a control edge."""
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in "abc")
    tensors = (Tensor("ab", 0, 8, (1,), output=True),)
    edges = ((0, 2),) if control else ()
    return Problem(Graph("fork", ops, tensors, edges), Cluster.identical(2), rules="regal")


def test_a_control_edge_is_a_transfer_that_blocks_both_devices() -> None:
    problem = _fork(control=True)
    priority, order = np.array([3, 2, 1], np.float32), [0, 1, 3, 2]
    schedule = Simulator(problem).schedule(np.array([0, 0, 1], np.int32), priority, None, "serial")
    assert schedule.sequence.tolist() == order
    assert schedule.start.tolist() == [0, 1, 2]
    assert schedule.transfer_start.tolist() == [2]


def test_an_output_goes_when_all_that_read_it_have_run() -> None:
    problem = _fork(control=False)
    schedule = Simulator(problem).schedule(np.array([0, 0, 0], np.int32), np.zeros(3, np.float32))
    wanted = _model(problem, schedule.placement).peak_memory([0, 1, 2])
    assert schedule.peak.tolist() == wanted == [8, 0]
