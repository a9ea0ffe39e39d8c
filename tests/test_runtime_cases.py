"""Cases of the runtime's benchmarks: placements at random, and calls timed in turn."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from situate import Problem, zoo
from situate.data.cluster import Cluster, Device, Link

pytest.importorskip("torch")

from benchmarks.lib import placements
from benchmarks.runtime import fidelity, runtime_cases


@pytest.fixture(scope="module")
def problem() -> Problem:
    device = Device("cpu:0", "cpu", flops={"float32": 1e11}, bandwidth=1e10)
    devices = (device, structs.replace(device, name="cpu:1"))
    return Problem(zoo.load("cifar_cnn"), Cluster("two", devices, (Link("*", "*", 1e9),)))


@pytest.mark.parametrize("draw", [placements.by_unit, placements.by_module, placements.contiguous])
def test_a_random_placement_uses_both_devices_and_splits_no_group(problem, draw):
    of_op = draw(problem, np.random.default_rng(1)).placement
    assert set(of_op) == {0, 1}
    of_unit = np.zeros(problem.units, np.int32)
    of_unit[problem.unit] = of_op
    assert (of_unit[problem.unit] == of_op).all()


@pytest.mark.parametrize("seed", range(5))
def test_a_contiguous_placement_cuts_the_forward_pass_once(problem, seed):
    of_op = placements.contiguous(problem, np.random.default_rng(seed)).placement
    ops = problem.graph.ops
    forward = [of_op[j] for j in problem.graph.order if ops[j].phase == "forward" and ops[j].flops]
    assert forward == sorted(forward)
    assert set(forward) == {0, 1}


def test_calls_are_timed_in_turn_and_in_reverse_in_every_other_round():
    called: list[int] = []
    turns = runtime_cases.in_turn([lambda k=k: called.append(k) for k in range(3)], 0.0)
    assert called[: 3 * runtime_cases.WARM_UP] == [0, 1, 2] * runtime_cases.WARM_UP
    assert called[3 * runtime_cases.WARM_UP :][:6] == [0, 1, 2, 2, 1, 0]
    assert turns.wall.shape == (runtime_cases.LEAST_ROUNDS, 3)


def test_a_ratio_is_the_median_of_the_rounds_ratios():
    wall = np.array([[1.0, 2.0], [10.0, 40.0], [1.0, 3.0]])
    turns = runtime_cases.Turns(wall, 2 * wall)
    assert turns.ratio(1, 0) == 3.0
    assert turns.seconds(1) == 3.0
    assert turns.cpu_ratio(0, 1) == pytest.approx(1 / 3)


def test_a_placed_step_of_a_case_returns_what_the_unplaced_one_does():
    case = runtime_cases.Case("small_rnn", (2, 3, 8))
    cluster = runtime_cases.one_cpu(1)
    schedule = placements.by_unit(case.problem(cluster), np.random.default_rng(0))
    with case.placed(schedule, cluster) as step:
        unplaced = case.unplaced()
        placed, plain = zip(*((step(*case.inputs), unplaced()) for _ in range(2)), strict=True)
    assert placed == plain
    assert placed[0] != placed[1]


def test_rank_correlation_is_of_order_alone():
    pairs = [(1.0, 5.0), (2.0, 6.0), (3.0, 60.0), (4.0, 7.0)]
    rows = [{"predicted_seconds": p, "measured_seconds": m} for p, m in pairs]
    assert fidelity._spearman(rows[:3], "seconds") == pytest.approx(1.0)
    assert fidelity._spearman(rows, "seconds") == pytest.approx(0.8)
    assert fidelity._spearman(rows[:2], "seconds") is None
