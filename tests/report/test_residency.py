from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.report.residency import TENSOR, WORKSPACE, residency
from tests.report.handmade import chain, schedule


def test_a_device_holds_parameters_tensors_and_workspace() -> None:
    """One device: 30 bytes held; op1 runs with its input, its output and its workspace."""
    problem = chain(3, devices=1)
    instants, use = residency(problem, schedule(problem, [0, 0, 0])).use(0)
    assert instants.tolist() == [0, 1, 2, 3]
    assert use.tolist() == [131, 231, 131, 0]


def test_a_sent_tensor_takes_memory_on_both_devices_while_it_moves() -> None:
    problem = chain(2)
    memory = residency(problem, schedule(problem, [0, 1]))
    assert dict(zip(*map(np.ndarray.tolist, memory.use(0)), strict=True)) == {
        0.0: 111, 1.0: 110, 2.0: 10, 3.0: 0,
    }  # fmt: skip
    assert dict(zip(*map(np.ndarray.tolist, memory.use(1)), strict=True)) == {
        0.0: 10, 1.0: 110, 2.0: 111, 3.0: 0,
    }  # fmt: skip


def test_what_fills_an_instant_comes_largest_first() -> None:
    problem = chain(3, devices=1)
    memory = residency(problem, schedule(problem, [0, 0, 0]))
    present = memory.at(0, 1.5)
    assert memory.size[present].tolist() == sorted(memory.size[present].tolist(), reverse=True)
    assert memory.size[present].sum() == 231
    assert set(memory.kind[present[:2]].tolist()) == {TENSOR}
    assert memory.kind[present[-1]] == WORKSPACE


def test_rules_per_step_count_positions_and_know_their_seconds() -> None:
    problem = chain(2, rules=RULES["regal"])
    memory = residency(problem, schedule(problem, [0, 1]))
    instants, use = memory.use(1)
    assert instants.tolist() == [0, 1, 2, 3]
    assert use.tolist() == [10, 110, 111, 0]
    assert memory.time(instants).tolist() == [0, 1, 2, 3]


def test_persistent_rules_count_nothing_else() -> None:
    problem = chain(3, rules=RULES["dnn-partitioning"])
    memory = residency(problem, schedule(problem, [0, 0, 1]))
    assert [memory.use(d)[1].max() for d in (0, 1)] == [20, 10]


@pytest.mark.parametrize("rules", ["situate", "regal", "dnn-partitioning"])
def test_its_largest_use_is_the_peak(rules: str) -> None:
    from situate.schedule.memory import peaks

    problem = chain(9, devices=3, rules=RULES[rules])
    plan = schedule(problem, [0, 1, 2, 2, 0, 1, 1, 1, 0])
    memory = residency(problem, plan)
    assert [memory.use(d)[1].max() for d in range(3)] == peaks(plan, problem).tolist()


def test_positions_have_the_seconds_of_what_starts_there() -> None:
    """The transfer takes four seconds, and one step like the ops."""
    problem = chain(2, bandwidth=25, rules=RULES["regal"])
    memory = residency(problem, schedule(problem, [0, 1]))
    instants, _ = memory.use(1)
    assert instants.tolist() == [0, 1, 2, 3]
    assert memory.time(instants).tolist() == [0, 1, 5, 6]


def test_what_starts_at_an_instant_is_there_and_what_ends_is_not() -> None:
    problem = chain(3, devices=1)
    memory = residency(problem, schedule(problem, [0, 0, 0]))
    present = memory.at(0, 1.0)
    tensors = present[memory.kind[present] == TENSOR]
    assert sorted(memory.index[tensors].tolist()) == [0, 1]
    workspace = present[memory.kind[present] == WORKSPACE]
    assert memory.index[workspace].tolist() == [1]


def test_what_takes_no_bytes_or_no_time_is_left_out() -> None:
    problem = chain(3, devices=1)
    plan = schedule(problem, [0, 0, 0])
    instant = replace(plan, end=np.where([False, True, False], plan.start, plan.end))
    memory = residency(problem, instant)
    assert (memory.size > 0).all()
    assert (memory.start < memory.end).all()
    assert memory.index[memory.kind == WORKSPACE].tolist() == [0, 2]


def test_a_step_that_takes_no_time_holds_its_parameters_all_the_same() -> None:
    graph = Graph("g", (Op("w", seconds={"*": 0.0}, persistent=7, workspace=5),))
    problem = Problem(graph, Cluster("c", (Device("a"),)))
    assert residency(problem, schedule(problem, [0])).use(0)[1].tolist() == [7, 0]
