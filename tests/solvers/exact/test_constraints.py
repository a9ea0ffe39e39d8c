"""Constraints on times: loads, starts and calls."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.data.topology import unit_devices
from situate.simulation.atomic import schedule_calls
from situate.simulation.simulator import Simulator
from situate.solvers.exact.clock import Ticking
from situate.solvers.exact.constraints import Calls, Timing, loads
from tests.oracle.problems import random_decision, random_problem
from tests.solvers.exact.solved import least, placed
from tests.solvers.families import RULES, apart, chain, devices, fork
from tests.solvers.programs import needs_ortools

pytestmark = needs_ortools


def _period(problem: Problem, placement: np.ndarray, period: float) -> float:
    placing = placed(problem, *unit_devices(problem, placement).tolist())
    durations = np.array([*(move.seconds for move in placing.moves), *problem.seconds.ravel()])
    clock = Ticking.until(period or 1.0, durations)
    most = placing.model.new_int_var(0, 2 * clock.horizon, "")
    for load in loads(placing, clock).values():
        placing.model.add(load <= most)
    return least(placing, most)[0] * clock.unit


# Loads of a placement are its period.
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("seed", range(6))
def test_the_largest_load_is_the_period(seed, rules):
    drawn = dataclasses.replace(random_problem(seed), objective="throughput")
    problem = Problem(drawn.graph, drawn.cluster, "throughput", rules)
    decision = random_decision(problem, seed)
    schedule = Simulator(problem).schedule(decision.placement, decision.priority)
    period = schedule.period(problem)
    result = _period(problem, decision.placement, period)
    assert result <= period
    assert result == pytest.approx(period, rel=1e-4)


def _makespan(problem: Problem, *where: int) -> int:
    placing = placed(problem, *where)
    timing = Timing(placing, Ticking.until(50.0, np.array([0.5])))
    return least(placing, timing.makespan)[0] // 2


# Ops and transfers take turns on what they occupy.
@pytest.mark.parametrize("transfers", ["overlapped", "blocking"])
def test_a_chain_across_devices_waits_for_its_transfers(transfers):
    problem = Problem(chain(3, size=4), devices(1, 2, transfers=transfers))
    assert _makespan(problem, 0, 0, 0) == 3
    assert _makespan(problem, 0, 1, 0) == 1 + 4 + 2 + 4 + 1


def test_a_device_runs_one_op_at_a_time():
    assert _makespan(Problem(apart(4), devices(1, 1)), 0, 0, 0, 1) == 3


@pytest.mark.parametrize(("rules", "makespan"), [("situate", 9), ("regal", 10), ("doppler", 7)])
def test_transfers_take_turns_on_a_channel_and_blocking_ones_on_devices(rules, makespan):
    """Ops 1 and 2, which end at 2 and 3, send 3 seconds each to op 3."""
    assert _makespan(Problem(fork(4, size=3), devices(1, 1), "time", rules), 0, 0, 0, 1) == makespan


@pytest.mark.parametrize(("transfers", "makespan"), [("overlapped", 8), ("blocking", 13)])
def test_blocking_transfers_take_the_time_of_both_devices(transfers, makespan):
    """Device 0 has an op of 7 seconds to run besides; the transfer takes 5."""
    two, more = chain(2, size=5), apart(3, seconds=7.0)
    graph = dataclasses.replace(two, ops=(*two.ops, more.ops[2]))
    assert _makespan(Problem(graph, devices(1, 1, transfers=transfers)), 0, 1, 0) == makespan


def test_a_signal_takes_its_time_to_other_devices_alone():
    graph = dataclasses.replace(apart(2), control=((0, 1),))
    problem = Problem(graph, devices(1, 1, synchronisation=4.0))
    assert (_makespan(problem, 0, 0), _makespan(problem, 0, 1)) == (2, 6)


# Calls of a placement end when those of the simulator do.
@pytest.mark.parametrize("seed", range(20))
def test_the_last_call_ends_with_the_step(seed):
    drawn = random_problem(seed)
    problem = Problem(drawn.graph, drawn.cluster, "time", "dnn-partitioning")
    placement = random_decision(problem, seed).placement
    makespan = schedule_calls(problem, placement).makespan
    if not np.isfinite(makespan) or not makespan:
        return
    placing = placed(problem, *unit_devices(problem, placement).tolist())
    durations = np.array([*(move.seconds for move in placing.moves), *problem.seconds.ravel()])
    clock = Ticking.until(makespan, durations)
    result = least(placing, Calls(placing, clock).makespan)[0] * clock.unit
    assert result <= makespan
    assert result == pytest.approx(makespan, rel=1e-4)
