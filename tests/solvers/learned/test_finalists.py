"""In the end the best of noisy placements are measured again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.evaluators.measurements import Measurements
from situate.evaluators.simulated import SimulatedMachine
from situate.solvers import solve
from situate.solvers.budget import Budget
from situate.solvers.learned.learner import Learning
from situate.solvers.learned.post import post
from situate.solvers.search import Search
from situate.study import Study
from tests.solvers.families import chain, devices
from tests.solvers.killed import PROBLEM, SAMPLES, learner, learnt, outcome, search

# Measuring the best again protects against lucky noise.


class Unsettled(SimulatedMachine):
    """A machine whose smallest time is believed."""

    finalists = 0


def test_a_plan_learnt_from_noisy_times_is_none_that_was_fast_by_luck() -> None:
    def value(machine: type[SimulatedMachine], seed: int) -> float:
        learning = Learning(evaluator=machine(PROBLEM, 0.3, seed, 1))
        return solve(PROBLEM, "post", evaluations=240, seed=seed, learning=learning).value

    settled, lucky = (
        np.mean([value(machine, seed) for seed in range(8)])
        for machine in (SimulatedMachine, Unsettled)
    )
    assert settled < lucky


# Sequential halving: the better half is measured twice as often.


class Lucky(SimulatedMachine):
    """A machine with much noise, in which the finalists find none."""

    finalists = 4

    def __init__(self) -> None:
        super().__init__(PROBLEM, 0.5, 3, 1)
        self.batches: list[NDArray[np.int32]] = []

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        if first < SAMPLES:
            return super().measure(placements, first)
        self.batches.append(placements)
        return SimulatedMachine(PROBLEM).measure(placements, first)


def test_of_noisy_placements_the_best_are_measured_again() -> None:
    machine = Lucky()
    result = search(None, evaluator=machine)
    assert [len(batches) for batches in machine.batches] == [4, 2, 2]
    assert len(np.unique(machine.batches[0], axis=0)) == 4
    assert np.array_equal(machine.batches[1], machine.batches[2])
    again = SimulatedMachine(PROBLEM).measure(machine.batches[0], 0).seconds
    assert result.value == result.measured == again.min() < again.max()
    assert len(result.samples) == SAMPLES


def test_of_many_finalists_the_better_half_is_measured_more_often() -> None:
    machine = Lucky()
    machine.finalists = 13
    result = search(None, evaluator=machine)
    assert [len(batches) for batches in machine.batches] == [13, 7, *[4] * 3, *[2] * 6]
    again = SimulatedMachine(PROBLEM).measure(machine.batches[0], 0).seconds
    assert result.measured == again.min()


def test_of_few_samples_one_in_eight_is_measured_again() -> None:
    machine = Lucky()
    machine.finalists = 100
    search(None, evaluator=machine)
    assert len(machine.batches[0]) == SAMPLES // 8 + 1


# Finalists are compared within a round, because a machine may slow down.


class Drifting(Lucky):
    """A machine that is ever slower, and once more so for the first of the finalists."""

    rounds: tuple[list[float], ...] = ([0.9, 1.0, 100.0, 100.0], [2.4, 2.0], [2.7, 3.0])

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        result = super().measure(placements, first)
        if first < SAMPLES:
            return result
        seconds = np.array(self.rounds[len(self.batches) - 1])
        return Measurements(seconds, np.isinf(seconds).astype(np.uint8))


def test_finalists_are_compared_by_what_they_took_in_the_same_round() -> None:
    machine = Drifting()
    result = search(None, evaluator=machine)
    assert np.array_equal(result.placement, machine.batches[0][0])
    assert result.measured == 2.4


def test_a_finalist_that_failed_once_is_not_chosen() -> None:
    machine = Drifting()
    machine.rounds = ([np.inf, 1.0, np.inf, np.inf], [2.0, 1.0], [2.0, 1.0])
    result = search(None, evaluator=machine)
    assert np.array_equal(result.placement, machine.batches[0][1])
    assert result.measured == 2.0


def test_finalists_that_take_no_time_are_compared() -> None:
    machine = Drifting()
    machine.rounds = ([np.inf, 0.0, 0.0, 1.0], [0.0, 1.0], [0.0, 1.0])
    result = search(None, evaluator=machine)
    assert np.array_equal(result.placement, machine.batches[0][1])
    assert result.measured == 0.0


# A study records the measurements of finalists too.


def test_a_complete_study_holds_what_was_measured_again(tmp_path: Path) -> None:
    first, second = Lucky(), Lucky()
    result = search(tmp_path / "study", evaluator=first)
    again = search(tmp_path / "study", evaluator=second)
    assert first.batches
    assert not second.batches
    assert outcome(again) == outcome(result)
    assert len(Study.read(tmp_path / "study")) == SAMPLES


def test_what_was_measured_again_before_a_kill_is_not_lost(tmp_path: Path) -> None:
    class Killed(Lucky):
        def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
            if len(self.batches) == 2:
                raise SystemExit
            return super().measure(placements, first)

    with suppress(SystemExit):
        search(tmp_path / "study", evaluator=Killed())
    machine = Lucky()
    result = search(tmp_path / "study", evaluator=machine)
    assert len(machine.batches) == 1
    assert outcome(result) == outcome(search(None, evaluator=Lucky()))


@pytest.mark.parametrize("finalists", [1, 16])
def test_a_plan_to_start_with_is_measured_again_whatever_it_took(finalists: int) -> None:
    machine = Lucky()
    machine.finalists = finalists
    result = search(None, evaluator=machine, start=lambda: np.zeros(PROBLEM.n, np.int32))
    batchessals = learner(PROBLEM, Learning(), SAMPLES, 3).ask(12)
    first = batchessals[SimulatedMachine(PROBLEM).measure(batchessals, 0).ok.argmax()]
    assert any(np.array_equal(first, placement) for placement in machine.batches[0])
    assert len(machine.batches[0]) in (finalists, finalists + 1)
    assert result.measured is not None


# Placements on one device are finalists even if the machine was slow at first.


class SlowAtFirst(SimulatedMachine):
    """A machine that others use while its first placements are measured."""

    finalists = 4

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        result = super().measure(placements, first)
        return replace(result, seconds=result.seconds * (10 if first < 12 else 1))


def test_one_device_is_measured_again_whatever_it_took() -> None:
    problem = Problem(chain(10), devices(1, 1, 2))
    learning = Learning(evaluator=SlowAtFirst(problem))
    search = Search(problem, budget=Budget(evaluation_limit=24), threads=1)
    result = learnt(search, post, learning)
    assert result.measured == solve(problem, "single").makespan
