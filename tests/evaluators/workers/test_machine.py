"""Samples measured by workers equal those of one process, whatever happens to workers."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from situate.errors import SituateError
from situate.evaluators.measurements import Evaluator, MeasuresEach
from situate.evaluators.simulated import SimulatedMachine
from situate.evaluators.workers import dispatch
from situate.evaluators.workers.machine import WorkerMachine
from situate.evaluators.workers.workers import NoWorkers, Terms
from tests.evaluators.workers.faulty import Counting, HangsAt, KilledAt, RaisesAt
from tests.solvers.killed import PROBLEM

PLACEMENTS = np.random.default_rng(0).integers(0, PROBLEM.d, (12, PROBLEM.n)).astype(np.int32)


UNSENDABLE = r"(?s)^Unsendable: 1 and 2\nin the process of a worker:\nTraceback .*, in harm\n"
"""The error of `RaisesAt`, with where it was raised."""


def measured_as_by_one(machine: Evaluator) -> None:
    """All placements, by a machine that counts."""
    expected = (np.arange(12) + 1.0) * (1 + PLACEMENTS.sum(axis=1) / 100)
    assert np.array_equal(machine.measure(PLACEMENTS, 0).seconds, expected)


def _all(evaluator: Evaluator, workers: int = 2, **terms: Any) -> WorkerMachine:
    """The machine, after it measured all placements as one process does."""
    with WorkerMachine(evaluator, workers, terms=Terms(**terms)) as machine:
        measured_as_by_one(machine)
    return machine


# The same study on any number of workers.
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_any_number_of_workers_measures_the_same(workers: int) -> None:
    machine = SimulatedMachine(PROBLEM, 0.1, 3, 1)
    alone = machine.measure(PLACEMENTS, 7)
    with WorkerMachine(machine, workers) as shared:
        for _ in range(2):
            together = shared.measure(PLACEMENTS, 7)
            assert np.array_equal(together.seconds, alone.seconds)
            assert np.array_equal(together.outcome, alone.outcome)


def test_small_batches_are_measured_here() -> None:
    machine = SimulatedMachine(PROBLEM, 0.1, 3, 1)
    with WorkerMachine(machine, 2, here=machine) as shared:
        assert np.array_equal(
            shared.measure(PLACEMENTS, 0).seconds, machine.measure(PLACEMENTS, 0).seconds
        )
        assert not shared.counts.completed


def test_each_worker_has_its_share(tmp_path: Path) -> None:
    machine = _all(Counting(tmp_path, 0.05))
    assert sum(machine.counts.completed.values()) == 12
    assert len(machine.counts.completed) == 2
    assert isinstance(machine, MeasuresEach)


# Killed, hung, slow and failing workers.
def test_a_killed_worker_loses_nothing_and_counts_nothing_twice(tmp_path: Path) -> None:
    machine = _all(KilledAt(tmp_path, number=5))
    assert sum(machine.counts.completed.values()) == 12
    assert sum(machine.counts.failures.values()) == 1


def test_a_hung_worker_is_ended(tmp_path: Path) -> None:
    machine = _all(HangsAt(tmp_path, number=5), workers=1, limit=0.5)
    assert machine.counts.failures == {0: 1}


def test_a_slow_sample_is_given_to_another_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "SLOW_SECONDS", 0.1)
    machine = _all(HangsAt(tmp_path, number=5))
    assert machine.counts.again in (1, 2)  # with what the slow one was to measure next
    assert not machine.counts.failures


def test_a_sample_at_which_every_worker_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        SituateError, match=r"^sample 5: 3 workers failed at it, the last one was ended by SIGKILL$"
    ):
        _all(KilledAt(tmp_path, number=5, times=10))


def test_a_worker_that_always_fails_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(NoWorkers, match=r"^no worker is left; the last, worker 0, was ended by"):
        _all(KilledAt(tmp_path, number=0, times=10), workers=1, tries=9)


# Errors of the evaluator, and evaluators that cannot be sent.
def test_an_error_of_the_evaluator_is_raised_here(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=UNSENDABLE):
        _all(RaisesAt(tmp_path, number=5))


def test_an_evaluator_that_cannot_be_copied_is_refused() -> None:
    class Local(Counting):
        lock = threading.Lock()

    with pytest.raises(SituateError, match="evaluator 'Local' cannot be copied to workers"):
        WorkerMachine(Local(Path("x")), 2)


def test_an_evaluator_that_workers_cannot_import_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "Counting", Counting, raising=False)
    monkeypatch.setattr(Counting, "__module__", "__main__")
    with pytest.raises(SituateError, match=r"cannot be unpacked there .*: define its class in"):
        _all(Counting(tmp_path))


def test_no_workers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SituateError, match=r"^workers: must be at least 1, got 0$"):
        WorkerMachine(Counting(tmp_path), 0)
