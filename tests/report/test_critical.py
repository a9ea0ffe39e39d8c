from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.report.critical import CriticalPath, critical_path
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import DecoderName, decode
from tests.oracle.problems import random_decision, random_problem
from tests.report.handmade import chain, schedule, two_branches


def test_a_chain_over_two_devices_computes_and_transfers() -> None:
    problem = chain(3)
    path = critical_path(problem, schedule(problem, [0, 1, 1]))
    assert (path.compute, path.transfer, path.waiting) == (3, 1, 0)
    assert [element.kind for element in path.elements] == [
        "compute", "transfer", "compute", "compute",
    ]  # fmt: skip
    assert path.by_device["gpu1"] == {"compute": 2, "transfer": 1, "waiting": 0}


def test_an_op_whose_device_is_busy_waits_for_it() -> None:
    path = critical_path(two_branches(), schedule(two_branches(), [0, 0, 0]))
    assert (path.compute, path.transfer, path.waiting) == (2, 0, 1)
    assert [e.kind for e in path.elements] == ["compute", "waits for device", "compute"]


def test_a_tensor_whose_channel_is_busy_waits_for_it() -> None:
    path = critical_path(two_branches(), schedule(two_branches(), [0, 1, 1]))
    assert (path.compute, path.transfer, path.waiting) == (2, 1, 1)
    waits = next(e for e in path.elements if e.kind == "waits for channel")
    assert (waits.name, waits.source, waits.device) == ("ac", "gpu0", "gpu1")


@pytest.mark.parametrize("placement", [[0, 1, 2, 0, 1, 2], [0] * 6, [2, 2, 1, 1, 0, 0]])
def test_its_parts_add_up_to_the_makespan_without_gaps(placement: list[int]) -> None:
    problem = chain(6, devices=3)
    plan = schedule(problem, placement)
    path = critical_path(problem, plan)
    assert path.compute + path.transfer + path.waiting == pytest.approx(plan.makespan)
    for before, after in zip(path.elements, path.elements[1:], strict=False):
        assert before.end == after.start


def test_one_op_is_its_own_path() -> None:
    problem = chain(1)
    assert [e.name for e in critical_path(problem, schedule(problem, [0])).elements] == ["op0"]


@pytest.mark.parametrize("rules", ["drawn", "dnn-partitioning"])
def test_it_leads_from_the_start_to_the_makespan_under_every_rule(rules: str) -> None:
    """Calls that wait for one another have no times."""
    for seed in range(100):
        problem = random_problem(seed)
        if rules != "drawn":
            problem = replace(problem, rules=RULES[rules])
        plan = _random_schedule(
            problem, seed, "calls" if problem.transfers == "atomic" else "eager"
        )
        if np.isfinite(plan.makespan):
            _check_parts(critical_path(problem, plan), plan)


def test_an_op_that_is_late_in_the_order_waits_for_the_op_before_it() -> None:
    """c, which needs nothing, has its turn on gpu1 behind b, which a of gpu0 feeds."""
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in "abc")
    devices = (Device("gpu0"), Device("gpu1"))
    graph = Graph("late", ops, (Tensor("ab", 0, 100, (1,)),))
    problem = Problem(graph, Cluster("pair", devices, (Link("*", "*", 100.0),)))
    order, placement = np.arange(3, dtype=np.int32), np.array([0, 1, 1], np.int32)
    path = critical_path(problem, decode(problem, placement, order, "serial"))
    assert [(e.kind, e.name) for e in path.elements] == [
        ("compute", "a"), ("transfer", "ab"), ("compute", "b"), ("compute", "c"),
    ]  # fmt: skip
    assert (path.compute, path.transfer, path.waiting) == (3, 1, 0)


def test_where_devices_keep_their_order_all_waiting_is_for_channels_that_are_busy() -> None:
    """With blocking transfers a transfer has its turn as well, and nothing waits."""
    for seed in range(100):
        problem = random_problem(seed)
        if problem.transfers == "atomic":
            continue
        plan = _random_schedule(problem, seed, "serial")
        path = critical_path(problem, plan)
        _check_parts(path, plan)
        waiting = {e.kind for e in path.elements} - {"compute", "transfer"}
        assert waiting <= ({"waits for channel"} if problem.transfers == "overlapped" else set())


@pytest.mark.parametrize(
    ("transfers", "kinds"),
    [
        ("overlapped", {"waits for device", "waits for channel"}),
        ("blocking", {"waits for device", "waits for devices"}),
        ("atomic", {"waits for call"}),
    ],
)
def test_waiting_is_called_by_what_is_waited_for(transfers: str, kinds: set[str]) -> None:
    result = set()
    for seed in range(40):
        problem = random_problem(seed)
        if transfers == "atomic":
            problem = replace(problem, rules=RULES["dnn-partitioning"])
        if problem.transfers == transfers:
            plan = _random_schedule(problem, seed, "calls" if transfers == "atomic" else "eager")
            if np.isfinite(plan.makespan):
                result |= {element.kind for element in critical_path(problem, plan).elements}
    assert result - {"compute", "transfer"} == kinds


def _random_schedule(problem: Problem, seed: int, decoder: DecoderName) -> Schedule:
    decision = random_decision(problem, seed)
    order = np.argsort(-decision.priority, kind="stable").astype(np.int32)
    return decode(problem, decision.placement, order, decoder)


def _check_parts(path: CriticalPath, plan: Schedule) -> None:
    ends = [0.0, *(element.end for element in path.elements)]
    assert [element.start for element in path.elements] == pytest.approx(ends[:-1])
    assert ends[-1] == pytest.approx(plan.makespan)
    assert path.compute + path.transfer + path.waiting == pytest.approx(plan.makespan)
