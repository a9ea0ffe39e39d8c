"""Orders of transfers stand for the priorities that they were made of."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.simulation.decoding import priority_of, scheduled
from situate.simulation.simulator import Simulator
from situate.simulation.transfer_order import (
    TransferOrder,
    by_priority,
    by_sequence,
    instant,
    transfer_pairs,
)
from tests.oracle.problems import random_decision, random_problem
from tests.solvers.families import chain, devices


def _on_two(n: int) -> tuple[Problem, np.ndarray]:
    """A chain whose ops are on two devices in turn."""
    return Problem(chain(n), devices(1, 1)), np.arange(n, dtype=np.int32) % 2


@pytest.mark.parametrize("decoder", ["eager", "serial"])
@pytest.mark.parametrize("seed", range(60))
def test_the_schedule_is_that_of_the_priorities(seed: int, decoder: str) -> None:
    problem = random_problem(seed)
    decision = random_decision(problem, seed)
    draw = np.random.default_rng(seed)
    of_transfers = draw.random((len(problem.size), problem.d), np.float32)
    simulator = Simulator(problem)
    placement, priority = decision.placement, decision.priority
    wanted = simulator.schedule(placement, priority, of_transfers, decoder)  # type: ignore[arg-type]
    order, transfers = by_priority(problem, placement, priority, of_transfers)
    result = scheduled(simulator, placement, order, decoder, transfers)  # type: ignore[arg-type]
    assert np.array_equal(result.start, wanted.start)
    assert np.array_equal(result.transfer_start, wanted.transfer_start)
    assert np.array_equal(result.peak, wanted.peak)


def test_a_transfer_is_instant_if_it_takes_no_time_between_any_devices() -> None:
    result = set()
    for seed in range(300):
        problem = random_problem(seed)
        if problem.d == 1:
            continue
        pairs = [(a, b) for a in range(problem.d) for b in range(problem.d) if a != b]
        slowest = [
            max(problem.transfer_time(t, *pair) for pair in pairs) for t in range(len(problem.size))
        ]
        wanted = (np.array(slowest) == 0) & ~problem.signal
        assert instant(problem).tolist() == wanted.tolist(), seed
        result |= set(wanted[np.isnan(problem.transfer_seconds)].tolist())
    assert result == {False, True}


def test_every_transfer_is_sent_once() -> None:
    problem, placement = _on_two(4)
    tensor, target = transfer_pairs(problem, placement)
    assert tensor.tolist() == [0, 1, 2]
    assert target.tolist() == [1, 0, 1]
    assert transfer_pairs(problem, np.zeros(4, np.int32))[0].size == 0


def test_of_one_priority_an_op_goes_before_a_transfer() -> None:
    problem, placement = _on_two(3)
    ones = np.ones((2, 2), np.float32)
    order, transfers = by_priority(problem, placement, np.ones(3, np.float32), ones)
    assert order.tolist() == [0, 1, 2]
    assert transfers.tensor.tolist() == [0, 1]
    assert transfers.place.tolist() == [3, 3]


def test_priorities_fall_one_by_one() -> None:
    problem, _ = _on_two(3)
    transfers = TransferOrder(*np.array([[0, 1], [1, 0], [0, 2]], np.int32))
    of_ops, of_transfers = transfers.priorities(problem, np.array([2, 0, 1], np.int32))
    assert of_ops.tolist() == [3, 1, 4]
    assert of_transfers[[0, 1], [1, 0]].tolist() == [5, 2]


def test_without_transfers_the_most_urgent_consumer_decides() -> None:
    problem, placement = _on_two(5)
    simulator, order = Simulator(problem), np.arange(5, dtype=np.int32)
    result = scheduled(simulator, placement, order, "serial")
    same = simulator.schedule(placement, priority_of(order), decoder="serial")
    assert np.array_equal(result.start, same.start)


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_a_schedule_has_every_transfer_of_another_placement_too(seed: int) -> None:
    problem = random_problem(seed)
    decision, other = random_decision(problem, seed), random_decision(problem, seed + 1)
    schedule = Simulator(problem).schedule(decision.placement, decision.priority)
    order, transfers = by_sequence(problem, schedule, other.placement)
    assert sorted(order.tolist()) == list(range(problem.n))
    wanted = zip(*(ends.tolist() for ends in transfer_pairs(problem, other.placement)), strict=True)
    result = zip(transfers.tensor.tolist(), transfers.target.tolist(), strict=True)
    assert sorted(result) == sorted(wanted)


def test_a_transfer_that_the_schedule_lacks_is_as_urgent_as_its_most_urgent_consumer() -> None:
    problem, placement = _on_two(4)
    schedule = Simulator(problem).schedule(np.zeros(4, np.int32), priority_of(np.arange(4)))
    order, transfers = by_sequence(problem, schedule, placement)
    assert order.tolist() == [0, 1, 2, 3]
    assert transfers.place.tolist() == [2, 3, 4]
