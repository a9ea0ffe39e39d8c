"""Orders and priorities, and the decoders by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.errors import SituateError
from situate.simulation.decoding import (
    decode,
    decoders_for,
    naming,
    order_of,
    priority_of,
    rescheduled,
    rising,
    step_times,
)
from situate.simulation.simulator import Simulator
from tests.oracle.problems import random_decision, random_problem
from tests.oracle.simulator import simulate
from tests.solvers.families import apart, chain, devices


def test_priorities_rank_as_the_order_does() -> None:
    order = np.array([2, 0, 3, 1], np.int32)
    assert priority_of(order).tolist() == [3, 1, 4, 2]


def test_priorities_of_very_many_ops_are_all_different() -> None:
    order = np.arange(200_000, dtype=np.int32)
    assert len(np.unique(priority_of(order))) == len(order)


@pytest.mark.parametrize("decoder", ["eager", "serial"])
@pytest.mark.parametrize("seed", range(50))
def test_a_decision_decodes_as_the_oracle_has_it(seed: int, decoder: str) -> None:
    problem = random_problem(seed)
    drawn = random_decision(problem, seed)
    order = np.random.default_rng(seed).permutation(problem.n).astype(np.int32)
    schedule = decode(problem, drawn.placement, order, decoder)  # type: ignore[arg-type]
    expected = simulate(problem, drawn.placement, priority_of(order), decoder=decoder)  # type: ignore[arg-type]
    assert schedule.start.tolist() == expected.start.tolist()
    assert schedule.makespan == expected.makespan
    assert schedule.decoder == decoder


@pytest.mark.parametrize("seed", range(100))
def test_the_order_of_a_schedule_is_that_of_starts_and_topological(seed: int) -> None:
    problem = random_problem(seed)
    drawn = random_decision(problem, seed)
    schedule = simulate(problem, drawn.placement, drawn.priority, decoder="eager")
    order = order_of(problem, schedule)
    assert (np.diff(schedule.start[order]) >= 0).all()
    place = np.argsort(order)
    assert all(place[before] < place[after] for before, after in problem.graph.edges())


@pytest.mark.parametrize("seed", range(100))
def test_so_is_that_of_calls_even_if_they_wait_for_one_another(seed: int) -> None:
    drawn = random_problem(seed)
    problem = Problem(drawn.graph, drawn.cluster, "time", "dnn-partitioning")  # type: ignore[arg-type]
    placement = random_decision(problem, seed).placement
    schedule = decode(problem, placement, np.arange(problem.n, dtype=np.int32), "calls")
    place = np.argsort(order_of(problem, schedule))
    assert all(place[before] < place[after] for before, after in problem.graph.edges())


def test_equal_keys_are_in_the_graphs_order() -> None:
    problem = random_problem(1)
    graph = problem.graph.order
    assert rising(problem, np.zeros(problem.n)).tolist() == list(graph)
    falling = -np.argsort(graph).astype(float)
    assert rising(problem, falling).tolist() == list(graph)[::-1]


def test_the_first_of_the_order_goes_first() -> None:
    problem = Problem(apart(3), devices(1))
    schedule = decode(problem, np.zeros(3, np.int32), np.array([2, 0, 1], np.int32), "eager")
    assert schedule.start.tolist() == [1, 2, 0]


@pytest.mark.parametrize("decoder", ["eager", "serial", "calls"])
@pytest.mark.parametrize(
    ("placement", "order", "message"),
    [
        (
            [0, 0],
            [0, 1, 2],
            r"placement: must be integers of shape \(3,\), got int64 of shape \(2,\)",
        ),
        ([0.0] * 3, [0, 1, 2], r"placement: must be integers of shape \(3,\), got float64"),
        (
            [0, 2, 0],
            [0, 1, 2],
            "placement: op 'op1' is placed on device 2; there are devices 0 to 1",
        ),
        ([0, -1, 0], [0, 1, 2], "placement: op 'op1' is placed on device -1"),
        ([0, 0, 0], [0, 1], r"order: must be integers of shape \(3,\)"),
        ([0, 0, 0], [0, 0, 0], "each of the op indices 0 to 2 once; it lacks 1, op 'op1'"),
        ([0, 0, 0], [0, 1, 3], "each of the op indices 0 to 2 once; it lacks 2, op 'op2'"),
    ],
)
def test_what_is_no_decision_is_refused(
    placement: list[int], order: list[int], message: str, decoder: Any
) -> None:
    with pytest.raises(SituateError, match=message):
        decode(Problem(chain(3), devices(1, 1)), np.array(placement), np.array(order), decoder)


def test_an_unknown_decoder_is_told_its_nearest() -> None:
    none = np.zeros(1, np.int32)
    with pytest.raises(SituateError, match="unknown decoder 'eagre'; did you mean 'eager'"):
        decode(Problem(chain(1), devices(1)), none, none, "eagre")  # type: ignore[arg-type]


def test_an_order_that_is_not_topological_is_a_priority_all_the_same() -> None:
    problem = Problem(chain(3), devices(1))
    schedule = decode(problem, np.zeros(3, np.int32), np.array([2, 1, 0], np.int32), "serial")
    assert schedule.start.tolist() == [0, 1, 2]


def test_calls_tell_the_time_under_atomic_rules_and_nothing_else() -> None:
    atomic = Problem(chain(2), devices(1, 1), "time", "dnn-partitioning")
    assert decoders_for(atomic, "time") == ("calls",)
    assert decoders_for(atomic, "throughput") == ("eager", "serial")
    assert decoders_for(Problem(chain(2), devices(1, 1)), "time") == ("eager", "serial")


@pytest.mark.parametrize("rules", ["situate", "dnn-partitioning"])
@pytest.mark.parametrize("seed", range(5))
def test_step_times_are_those_of_the_schedules(seed: int, rules: Any) -> None:
    drawn = random_problem(seed)
    problem = Problem(drawn.graph, drawn.cluster, "time", rules)
    order = np.array(problem.graph.order, np.int32)
    placements = np.array([random_decision(problem, seed + k).placement for k in range(3)])
    seconds, peak = step_times(Simulator(problem), placements, priority_of(order))
    (decoder, *_) = decoders_for(problem, "time")
    schedules = [decode(problem, placement, order, decoder) for placement in placements]
    assert seconds.tolist() == [schedule.makespan for schedule in schedules]
    assert peak.tolist() == [schedule.peak.tolist() for schedule in schedules]


@pytest.mark.parametrize("rules", ["situate", "dnn-partitioning"])
def test_the_core_refuses_an_unknown_device_and_its_op_is_named(rules: Any) -> None:
    problem = Problem(chain(2), devices(1, 1), "time", rules)
    placements = np.array([[0, 1], [0, 2]], np.int32)
    priority = priority_of(np.arange(2, dtype=np.int32))
    message = "row 1: op '.*' is placed on device 2; there are devices 0 to 1"
    with (
        pytest.raises(SituateError, match=message),
        naming(problem, placements, lambda row: f"row {row}: "),
    ):
        step_times(Simulator(problem), placements, priority)


@pytest.mark.parametrize("decoder", ["eager", "serial"])
@pytest.mark.parametrize("seed", range(40))
def test_a_schedule_is_made_again_whatever_urgency_its_transfers_have(
    seed: int, decoder: Any
) -> None:
    problem = random_problem(seed)
    decision, simulator = random_decision(problem, seed), Simulator(problem)
    urgent = np.random.default_rng(seed).random((len(problem.size), problem.d), np.float32)
    made = simulator.schedule(decision.placement, decision.priority, urgent, decoder)
    again = rescheduled(problem, made)
    assert again.makespan == made.makespan
    assert again.decoder == decoder


def test_on_other_devices_it_is_decoded_as_it_was() -> None:
    problem = Problem(chain(3), devices(1, 1))
    first = np.zeros(3, np.int32)
    made = decode(problem, first, np.arange(3, dtype=np.int32), "serial")
    result = rescheduled(problem, made, np.array([0, 1, 1], np.int32))
    assert result.placement.tolist() == [0, 1, 1]
    assert result.decoder == "serial"
    assert result.tensor.tolist() == [0]
