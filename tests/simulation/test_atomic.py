"""Calls under atomic rules: against the definition, evaluated slowly, and published latencies."""

from __future__ import annotations

import json
import math
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from situate import _core
from situate.data.cluster import Cluster, Device, Link
from situate.data.core_problem import core_problem
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.evaluators.simulated import SimulatedMachine
from situate.readers import read
from situate.simulation import atomic as calls
from situate.simulation.atomic import schedule_calls
from situate.solvers.search import Search
from tests.oracle.problems import random_decision, random_problem
from tests.solvers.families import devices, fork

DATA = Path(__file__).parent.parent / "instances" / "dnn-partitioning"


def latency(problem: Problem, placement: list[int]) -> float:
    """By the definition: an accelerator's ops end with its call, which begins once all it reads
    from elsewhere is there; an op on a CPU ends on its own. A signal occupies no call and takes its
    time between them. Infinite where calls go in a circle."""
    is_cpu = [device.kind == "cpu" for device in problem.cluster.devices]
    tensors = _tensors(problem)
    under_way: set[int] = set()

    def signal(t: int) -> bool:
        own = problem.graph.tensors[t].seconds if t < len(problem.graph.tensors) else None
        return problem.size[t] == 0 and own is None

    def reads(ops: list[int]) -> list[tuple[int, int]]:
        return [(t, op) for t, (_, users) in enumerate(tensors) for op in ops if op in users]

    def arrives(t: int, op: int) -> float:
        producer = tensors[t][0]
        crosses = placement[producer] != placement[op]
        return end(producer) + (problem.cluster.synchronisation if signal(t) and crosses else 0.0)

    def load(device: int) -> float:
        ops = [op for op in range(problem.n) if placement[op] == device]
        total = sum(problem.seconds[op, device] for op in ops)
        for t, (producer, users) in enumerate(tensors):
            if signal(t):
                continue
            home, there = placement[producer], {placement[op] for op in users}
            if home == device and there - {device}:
                total += max(problem.transfer_time(t, device, to) for to in there - {device})
            if home != device and device in there:
                total += problem.transfer_time(t, home, device)
        return float(total)

    @cache
    def end(op: int) -> float:
        device = placement[op]
        node = op if is_cpu[device] else -1 - device
        if node in under_way:
            return math.inf
        under_way.add(node)
        if is_cpu[device]:
            inputs, takes = reads([op]), problem.seconds[op, device]
        else:
            ops = [other for other in range(problem.n) if placement[other] == device]
            inputs = [(t, op) for t, op in reads(ops) if placement[tensors[t][0]] != device]
            takes = load(device)
        begin = max((arrives(t, op) for t, op in inputs), default=0.0)
        under_way.discard(node)
        return float(begin + takes)

    return max(map(end, range(problem.n)))


def _tensors(problem: Problem) -> list[tuple[int, list[int]]]:
    starts, flat = problem.consumer_start.tolist(), problem.consumers.tolist()
    rows = [flat[a:b] for a, b in pairwise(starts)]
    return list(zip(problem.producer.tolist(), rows, strict=True))


def _drawn(seed: int) -> tuple[Problem, np.ndarray]:
    drawn = random_problem(seed)
    problem = Problem(drawn.graph, drawn.cluster, "time", "dnn-partitioning")  # type: ignore[arg-type]
    return problem, random_decision(problem, seed).placement


@pytest.mark.parametrize("chunk", range(10))
def test_calls_take_what_the_definition_says(chunk: int) -> None:
    finite = 0
    for seed in range(chunk, 400, 10):
        problem, placement = _drawn(seed)
        makespan, _, loads, _ = _core.simulation.atomic_calls(core_problem(problem), placement)
        expected = latency(problem, placement.tolist())
        assert makespan == pytest.approx(expected, rel=1e-12), seed
        schedule = schedule_calls(problem, placement)
        assert schedule.makespan == makespan
        assert schedule.makespan == max(schedule.end.max(), schedule.transfer_end.max(initial=0.0))
        if np.isfinite(makespan):
            schedule.verify(problem, allow_overflow=True)
            finite += 1
        assert schedule.busy(problem) == pytest.approx(loads), seed
    assert finite > 5


def _network(kind: str, name: str, inputs: str = "latency-inputs") -> tuple[Problem, list[int]]:
    path = DATA / inputs / kind / f"{name}.json"
    graph = read(path)
    machine = Cluster.of_machine("file", graph.machine)
    ids = [node["id"] for node in json.loads(path.read_text())["nodes"]]
    return Problem(graph, machine, "time", graph.rules), ids  # type: ignore[arg-type]


def _milliseconds(problem: Problem, device_of: dict[int, int], ids: list[int]) -> float:
    schedule = schedule_calls(problem, np.array([device_of[i] for i in ids], np.int32))
    schedule.verify(problem)
    return schedule.makespan * 1000


def _devices(split: dict[str, Any]) -> dict[int, int]:
    """Device of every node; accelerators come first, as in the graph's machine."""
    devices = split["fpgas"] + split["cpus"]
    return {node: d for d, device in enumerate(devices) for node in device["nodes"]}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("LayerGraphs", "bert24_inference"),
        ("LayerGraphs", "resnet50_inference"),
        ("OperatorGraphs", "bert_l-3_inference"),
        ("OperatorGraphs", "resnet50_inference"),
    ],
)
def test_the_authors_greedy_splits_take_what_they_report(kind: str, name: str) -> None:
    problem, ids = _network(kind, name)
    solution = json.loads((DATA / "reference" / f"latency_greedy_{kind}_{name}.json").read_text())
    taken = _milliseconds(problem, _devices(solution), ids)
    assert taken == pytest.approx(solution["totalLatency"], rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("LayerGraphs", "bert24_inference"), ("OperatorGraphs", "bert_l-3_inference")],
)
def test_the_splits_of_the_integer_program_take_what_it_reports(kind: str, name: str) -> None:
    """Its subgraph 0 is the CPUs, subgraph k accelerator k."""
    problem, ids = _network(kind, name)
    solution = json.loads((DATA / "reference" / f"latip_{kind}_{name}_q1.json").read_text())
    cpu = next(d for d, device in enumerate(problem.cluster.devices) if device.kind == "cpu")
    subgraphs = solution["subgraph_of_node"]
    device_of = {int(node): k - 1 if k else cpu for node, k in subgraphs.items()}
    assert _milliseconds(problem, device_of, ids) == pytest.approx(solution["objective"], rel=1e-6)


def test_the_experts_split_takes_what_was_published() -> None:
    """It is for six accelerators, one more than the file brings."""
    problem, ids = _network("LayerGraphs", "bert24_inference")
    accelerator, cpu = problem.graph.machine[0], problem.graph.machine[-1]
    machine = (*(replace(accelerator, name=f"acc{i}") for i in range(6)), cpu)
    cluster = Cluster.of_machine("six", machine)
    problem = Problem(problem.graph, cluster, "time", problem.rules)
    split = json.loads((DATA / "human-experts" / "bert24_inference_expert.json").read_text())
    assert _milliseconds(problem, _devices(split), ids) == pytest.approx(111.937, abs=5e-4)


def _small(*edges: tuple[int, int], n: int = 3) -> Problem:
    """Ops of one second; tensors of 0.25 seconds; devices acc0, acc1 and a CPU."""
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(n))
    tensors = tuple(Tensor(f"t{i}", a, 1, (b,), seconds=0.25) for i, (a, b) in enumerate(edges))
    devices = (Device("acc0"), Device("acc1"), Device("cpu0", kind="cpu"))
    cluster = Cluster("c", devices, (Link("*", "*", math.inf),))
    return Problem(Graph("g", ops, tensors), cluster, "time", "dnn-partitioning")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("placement", "seconds"),
    [
        ([0, 0, 0], 3.0),
        ([0, 1, 1], 1.25 + 2.25),
        ([0, 1, 0], math.inf),
        ([2, 2, 2], 3.0),
        ([2, 0, 2], 1 + 1.5 + 1),
    ],
)
def test_a_chain_by_hand(placement: list[int], seconds: float) -> None:
    problem = _small((0, 1), (1, 2))
    assert schedule_calls(problem, np.array(placement, np.int32)).makespan == seconds


def test_a_cpu_runs_any_number_of_ops_at_once() -> None:
    assert schedule_calls(_small(n=9), np.full(9, 2, np.int32)).makespan == 1


def test_a_long_op_on_a_cpu_starts_when_its_input_is_made() -> None:
    ops = (Op("short", seconds={"*": 1.0}), Op("long", seconds={"*": 1e20}))
    graph = Graph("g", ops, (Tensor("t", 0, 1, (1,)),))
    problem = Problem(graph, _small().cluster, "time", "dnn-partitioning")  # type: ignore[arg-type]
    schedule = schedule_calls(problem, np.array([2, 2], np.int32))
    assert schedule.start.tolist() == [0.0, 1.0]
    schedule.verify(problem)


def test_only_persistent_bytes_count() -> None:
    ops = (Op("a", seconds={"*": 1.0}, persistent=5, workspace=100), Op("b", seconds={"*": 1.0}))
    graph = Graph("g", ops, (Tensor("t", 0, 70, (1,)),))
    problem = Problem(graph, _small().cluster, "time", "dnn-partitioning")  # type: ignore[arg-type]
    assert schedule_calls(problem, np.array([1, 1], np.int32)).peak.tolist() == [0, 5, 0]


def test_the_makespan_is_the_last_end_to_the_last_bit() -> None:
    """A load is another sum than the ends of its parts."""
    ops = tuple(Op(f"op{i}", seconds={"*": taken}) for i, taken in enumerate((0.1, 0.1, 0.7)))
    graph = Graph("g", ops, (Tensor("t", 0, 1, (1,), seconds=0.1),), control=((1, 2),))
    cluster = Cluster("c", (Device("x"), Device("y")), (Link("*", "*", 10.0, 0.25),))
    problem = Problem(graph, cluster, rules=RULES["dnn-partitioning"])
    schedule = schedule_calls(problem, np.array([0, 1, 1], np.int32))
    assert schedule.makespan == 0.1 + 0.1 + 0.1 + 0.1 + 0.7 == schedule.end[2]
    assert schedule.makespan != (0.1 + 0.1) + (0.1 + 0.1 + 0.7)


def test_calls_that_wait_for_one_another_have_no_times() -> None:
    schedule = schedule_calls(_small((0, 1), (1, 2)), np.array([0, 1, 0], np.int32))
    times = (schedule.start, schedule.end, schedule.transfer_start, schedule.transfer_end)
    assert np.isinf(np.concatenate(times)).all()


def test_of_one_problem_the_core_makes_its_own_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search or a learner asks for very many schedules."""
    problem = Problem(fork(6), devices(1, 1), rules=RULES["dnn-partitioning"])
    search, machine = Search(problem, threads=1), SimulatedMachine(problem)
    monkeypatch.setattr(calls, "core_problem", None)
    placement = np.zeros(problem.n, np.int32)
    best = search.offer(placement, np.arange(problem.n, dtype=np.int32))
    assert machine.measure(placement[None], 0).seconds.tolist() == [best.value]
