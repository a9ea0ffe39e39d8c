"""The core's simulator agrees with the oracle to the last bit."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import astuple
from typing import Any

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.schedule.schedule import Schedule
from situate.simulation.simulator import Simulator
from tests.oracle.problems import random_decision, random_problem
from tests.oracle.simulator import simulate
from tests.solvers.families import devices, layered

DECODERS = ("eager", "serial")
CHUNKS, CHUNK = 10, 250


def _in_order(schedule: Schedule) -> list[list[tuple[float, ...]]]:
    """Ops and transfers as rows, transfers by tensor, then target."""
    ops = zip(schedule.start.tolist(), schedule.end.tolist(), strict=True)
    moves = zip(
        schedule.tensor.tolist(),
        schedule.target.tolist(),
        schedule.source.tolist(),
        schedule.transfer_start.tolist(),
        schedule.transfer_end.tolist(),
        strict=True,
    )
    return [list(ops), sorted(moves)]


def _decisions(problem: Problem, seed: int, count: int) -> list[np.ndarray]:
    """Placements (k, n), priorities (k, n) and transfer priorities (k, m, d)."""
    drawn = [random_decision(problem, seed + k) for k in range(count)]
    shape = (len(problem.size), problem.d)
    moves = [np.zeros(shape) if d.transfer_priority is None else d.transfer_priority for d in drawn]
    return [
        np.array([d.placement for d in drawn]),
        np.array([d.priority for d in drawn]),
        np.array(moves, np.float32),
    ]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_schedules_equal_the_oracles_and_pass_verification(chunk: int) -> None:
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        problem = random_problem(seed)
        decision = astuple(random_decision(problem, seed))
        for decoder in DECODERS:
            expected = simulate(problem, *decision, decoder=decoder)
            schedule = Simulator(problem).schedule(*decision, decoder=decoder)
            assert _in_order(schedule) == _in_order(expected), (seed, decoder)
            assert schedule.makespan == expected.makespan, (seed, decoder)
            assert schedule.peak.tolist() == expected.peak.tolist(), (seed, decoder)
            assert schedule.decoder == decoder
            schedule.verify(problem, allow_overflow=True)


@pytest.mark.parametrize("rules", ["regal", "situate"])
@pytest.mark.parametrize("count", [64**2, 64**3])
def test_ops_of_no_duration_behind_all_others_delay_nothing(count: int, rules: Any) -> None:
    """So many that a queue of them has another level."""
    few = layered(8, 6, seed=0)
    more = tuple(Op(f"more{j}", seconds={"*": 0.0}) for j in range(count))
    alone = Problem(few, devices(1, 1), "time", rules)
    among = Problem(Graph("more", few.ops + more, few.tensors), alone.cluster, "time", rules)
    rng = np.random.default_rng(0)
    placement = rng.integers(0, 2, among.n).astype(np.int32)
    priority = np.append(1 + rng.random(alone.n), rng.random(count)).astype(np.float32)
    for decoder in DECODERS:
        expected = Simulator(alone).schedule(
            placement[: alone.n], priority[: alone.n], None, decoder
        )
        schedule = Simulator(among).schedule(placement, priority, None, decoder)
        assert schedule.start[: alone.n].tolist() == expected.start.tolist()
        assert schedule.transfer_start.tolist() == expected.transfer_start.tolist()


@pytest.mark.parametrize("decoder", DECODERS)
def test_evaluation_equals_the_schedule_at_any_thread_count(decoder: str) -> None:
    for seed in range(300):
        problem = random_problem(seed)
        decisions = _decisions(problem, seed, 5)
        simulator = Simulator(problem)
        result = [simulator.evaluate(*decisions, decoder=decoder, threads=k) for k in (1, 3)]
        for k, decision in enumerate(zip(*decisions, strict=True)):
            schedule = simulator.schedule(*decision, decoder=decoder)
            for makespan, peak in result:
                assert makespan[k] == schedule.makespan, seed
                assert peak[k].tolist() == schedule.peak.tolist(), seed
        makespans = simulator.makespans(*decisions, decoder=decoder, threads=2)
        assert makespans.tolist() == result[0][0].tolist(), seed


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_transfer_is_as_urgent_as_its_most_urgent_consumer(decoder: str) -> None:
    for seed in range(100):
        problem = random_problem(seed)
        placements, priorities, _ = _decisions(problem, seed, 2)
        moves = np.zeros((2, len(problem.size), problem.d), np.float32)
        edges = np.repeat(np.arange(len(problem.size)), np.diff(problem.consumer_start))
        for k in range(2):
            moves[k] = -np.inf
            devices = placements[k][problem.consumers]
            np.maximum.at(moves[k], (edges, devices), priorities[k][problem.consumers])
        moves[np.isinf(moves)] = 0
        simulator = Simulator(problem)
        given = simulator.evaluate(placements, priorities, moves, decoder=decoder)
        derived = simulator.evaluate(placements, priorities, decoder=decoder)
        assert given[0].tolist() == derived[0].tolist()
        assert given[1].tolist() == derived[1].tolist()


def test_one_simulator_can_be_used_again() -> None:
    problem = random_problem(3)
    simulator = Simulator(problem)
    decision = astuple(random_decision(problem, 0))
    first = simulator.schedule(*decision)
    simulator.schedule(*astuple(random_decision(problem, 1)))
    assert _in_order(simulator.schedule(*decision)) == _in_order(first)


@pytest.mark.parametrize("device", [-1, 99])
def test_a_device_that_does_not_exist_is_an_error(device: int) -> None:
    problem = random_problem(3)
    decision = random_decision(problem, 0)
    placement = decision.placement.copy()
    placement[-1] = device
    with pytest.raises(ValueError, match="device"):
        Simulator(problem).schedule(placement, decision.priority)


def test_arrays_of_the_wrong_shape_are_errors() -> None:
    problem = random_problem(3)
    decision = random_decision(problem, 0)
    simulator = Simulator(problem)
    with pytest.raises(ValueError, match="placement"):
        simulator.schedule(decision.placement[1:], decision.priority)
    with pytest.raises(ValueError, match="priorit"):
        simulator.schedule(decision.placement, decision.priority[1:])
    with pytest.raises(ValueError, match="priorit"):
        simulator.schedule(
            decision.placement, decision.priority, np.zeros((1, problem.d), np.float32)
        )


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_priorities_must_be_finite(value: float) -> None:
    problem = random_problem(3)
    decision = random_decision(problem, 0)
    priority = decision.priority.copy()
    priority[0] = value
    with pytest.raises(ValueError, match="finite"):
        Simulator(problem).schedule(decision.placement, priority)


def test_requests_of_one_instant_queue_as_quickly_in_any_order() -> None:
    """Ops of no duration ask for transfers one by one, all at once: not with their square."""
    k = 16_000
    ops = tuple(
        Op(f"op{j}", seconds={"d0": float(j >= k), "d1": float(j >= k)}) for j in range(2 * k)
    )
    tensors = tuple(Tensor(f"t{j}", j, 1, (k + j,)) for j in range(k))
    cluster = Cluster("two", (Device("d0"), Device("d1")), (Link("*", "*", 1.0),))
    simulator = Simulator(Problem(Graph("senders", ops, tensors), cluster))
    placement = np.repeat(np.array([0, 1], np.int32), k)[None]
    sorted_, mixed = np.arange(2.0 * k), np.random.default_rng(0).permutation(2 * k)
    seconds = []
    for priority in -sorted_, mixed:
        begin = time.thread_time()
        simulator.evaluate(placement, priority[None], threads=1)
        seconds.append(time.thread_time() - begin)
    assert seconds[1] < 30 * seconds[0]


SHORT_OF_MEMORY = """
import os, resource
import numpy as np
import situate
from situate.simulation.simulator import Simulator

problem = situate.Problem(situate.zoo.load("nmt8"), situate.Cluster.preset("k80-4"))
simulator = Simulator(problem)
decisions = np.zeros((4, problem.n), np.int32), np.zeros((4, problem.n), np.float32)
for room in range(8_000_000, 20_000_000, 500_000):
    if process := os.fork():
        assert os.waitpid(process, 0)[1] == 0, room
        continue
    with open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + room, taken + room))
    try:
        simulator.evaluate(*decisions, threads=4)
    except MemoryError:
        pass
    os._exit(0)
"""


@pytest.mark.skipif(
    sys.platform != "linux" or "san" in os.environ.get("LD_PRELOAD", ""),
    reason="reads /proc; sanitizers end a process that is out of memory",
)
def test_want_of_memory_on_any_thread_is_an_error() -> None:
    """Not the end of the process."""
    command = [sys.executable, "-c", SHORT_OF_MEMORY]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
