"""The expected time of a step includes the slowdown that devices cause one another."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.costs import Costs, MeasuredDevice
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.results.expected import expected_schedule, expected_seconds
from situate.simulation.decoding import decode
from situate.simulation.simulator import Simulator
from tests.oracle.problems import random_decision, random_problem

SIZE = 10
GRAPH = Graph(
    "two chains",
    tuple(Op(f"{chain}{i}", "aten.mm", seconds={"*": 2.0}) for chain in "ab" for i in (1, 2)),
    (Tensor("a", 0, SIZE, (1,)), Tensor("b", 2, SIZE, (3,))),
)
ORDER = np.arange(4, dtype=np.int32)
APART, CROSSED, ONE = [0, 0, 1, 1], [0, 1, 1, 0], [0, 0, 0, 0]


def expected(
    placement: list[int], contention: float = 1.0, step: float = 0.0, kind: str = "cpu"
) -> tuple[float, float]:
    """The makespan, and the expected seconds."""
    devices = tuple(Device(name, kind=kind, threads=1) for name in ("x", "y"))
    links = (Link("*", "*", bandwidth=10.0),)
    measured = [
        MeasuredDevice(d.name, d.kind, contention={"matmul": contention}, threads=1)
        for d in devices
    ]
    costs = Costs("here", "today", {}, measured, [], 0.0, step)
    problem = Problem(GRAPH, Cluster("two", devices, links), costs=costs)
    schedule = decode(problem, np.array(placement, np.int32), ORDER, "eager")
    result = expected_schedule(problem, schedule)
    together = len(set(placement)) > 1
    assert result.makespan + step * together == expected_seconds(problem, schedule)
    assert result.placement.tolist() == placement
    return schedule.makespan, expected_seconds(problem, schedule)


def test_one_device_takes_its_makespan() -> None:
    assert expected(ONE, contention=1.5, step=1.0) == (8.0, 8.0)


def test_without_measured_costs_it_is_the_makespan() -> None:
    problem = Problem(GRAPH, Cluster.find("identical:2"))
    schedule = decode(problem, np.array(APART, np.int32), ORDER, "eager")
    assert expected_seconds(problem, schedule) == schedule.makespan == 4.0


def test_ops_take_longer_while_the_other_device_works() -> None:
    assert expected(APART, contention=1.5) == (4.0, 6.0)


def test_and_no_longer_where_one_waits_for_the_other() -> None:
    assert expected([0, 0, 0, 1], contention=1.5) == (9.0, 9.0)


def test_a_step_on_several_devices_takes_what_was_measured_beside_them() -> None:
    assert expected(APART, step=0.25) == (4.0, 4.25)


def test_a_cpu_that_sends_computes_nothing_meanwhile() -> None:
    assert expected([0, 1, 0, 0]) == (6.0, 7.0)


def test_what_is_sent_is_there_when_it_was_sent() -> None:
    assert expected(CROSSED) == (5.0, 5.0)


def test_a_gpu_that_sends_goes_on() -> None:
    assert expected([0, 1, 0, 0], kind="gpu") == (6.0, 6.0)


@pytest.mark.parametrize("seed", range(5))
def test_blocking_transfers_keep_their_urgency(seed: int) -> None:
    drawn = random_problem(seed)
    costs = Costs("here", "today", {}, [], [], 0.0, 0.0)
    problem = Problem(drawn.graph, drawn.cluster, rules="regal", costs=costs)
    decision = random_decision(problem, seed)
    urgent = np.random.default_rng(seed).random((len(problem.size), problem.d), np.float32)
    made = Simulator(problem).schedule(decision.placement, decision.priority, urgent, "serial")
    assert expected_seconds(problem, made) == made.makespan


@pytest.mark.parametrize("seed", range(20))
def test_ops_that_take_no_time_change_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    seconds = rng.choice([0.0, 1e-6, 1.0, 2.0], 30)
    ops = tuple(Op(f"op{j}", "aten.mm", seconds={"*": s}) for j, s in enumerate(seconds.tolist()))
    devices = tuple(Device(name, kind="cpu", threads=1) for name in ("x", "y"))
    links = (Link("*", "*", bandwidth=10.0),)
    measured = [
        MeasuredDevice(d.name, d.kind, contention={"matmul": 1.5}, threads=1) for d in devices
    ]
    costs = Costs("here", "today", {}, measured, [], 0.0, 0.0)
    problem = Problem(Graph("ops", ops, ()), Cluster("two", devices, links), costs=costs)
    placement, order = rng.integers(0, 2, 30).astype(np.int32), rng.permutation(30)
    planned = decode(problem, placement, order.astype(np.int32), "eager")
    result = expected_schedule(problem, planned)
    longer = result.end - result.start - seconds
    assert (longer >= -1e-9).all()
    assert (longer <= 0.5 * seconds + 1e-9).all()
