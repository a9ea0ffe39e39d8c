from __future__ import annotations

import numpy as np
import pytest

from situate.problem import RULES
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
    from situate.memory import peaks

    problem = chain(9, devices=3, rules=RULES[rules])
    plan = schedule(problem, [0, 1, 2, 2, 0, 1, 1, 1, 0])
    memory = residency(problem, plan)
    assert [memory.use(d)[1].max() for d in range(3)] == peaks(plan, problem).tolist()
