"""Measurements on this machine, from the command line."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from situate.cli.hardware import ROUNDS, _note_measurements, with_measurements
from situate.data.problem import Problem
from situate.evaluators.hardware.machine import Measurement
from situate.host.discover import to_toml
from situate.solvers import solve
from situate.study import Study
from tests.evaluators.hardware_search import CPUS, MODEL
from tests.solvers.families import devices, fork

HARDWARE = ("--method", "post", "--samples", "12", "--evaluator", "hardware")


@pytest.fixture
def cpus(tmp_path: Path) -> str:
    """Two CPU devices of this machine."""
    path = tmp_path / "cpus.toml"
    path.write_text(to_toml(CPUS))
    return str(path)


# Searches measure placements on real devices.
def test_a_plan_that_was_learnt_on_hardware_says_what_it_takes(situate, cpus):
    pytest.importorskip("torch")
    run = situate("plan", MODEL, "--cluster", cpus, *HARDWARE, "--study", "s.study", "--json")
    assert run.status == 0, run.err
    assert 0 < run.json["measured"] < 1
    assert run.json["samples"]["count"] == 12
    assert Study.read("s.study").header["evaluator"].startswith("hardware ")
    assert " steps each, standard error " in run.err


def test_where_nothing_ran_in_time_the_status_says_so(situate, cpus):
    pytest.importorskip("torch")
    few = (*HARDWARE, "--samples", "3")
    run = situate("plan", MODEL, "--cluster", cpus, *few, "--timeout", "1e-5", "--json")
    assert run.status == 3
    assert run.json["samples"]["failures"] == 3
    assert "(timeout), so there was nothing to learn from; give a measurement more time" in run.err
    assert "the plan did not run on this machine" in run.err


def test_hardware_takes_a_model_that_runs(situate, model, pair):
    pytest.importorskip("torch")
    run = situate("plan", model, "--cluster", pair, *HARDWARE)
    assert (run.status, run.out) == (2, "")
    assert "is no PyTorch model that could run: give a network of the zoo or" in run.err


def test_methods_that_do_not_learn_have_nothing_to_measure(situate, model, pair):
    run = situate("plan", model, "--cluster", pair, "--evaluator", "hardware")
    assert (run.status, run.out) == (2, "")
    assert "--evaluator: method 'auto' does not learn from measurements" in run.err


# Measurements have their number of steps and their error.
def test_plans_are_measured_in_turn_and_have_their_medians():
    results = [solve(Problem(fork(2), devices(1, 1)), name) for name in ("single", "heft")]
    assert ROUNDS == 3
    seconds = deque([1.0, 10.0, 3.0, np.inf, 2.0, 20.0])
    machine = SimpleNamespace(run=lambda _: SimpleNamespace(seconds=seconds.popleft()))
    assert [result.measured for result in with_measurements(results, machine)] == [2.0, 20.0]
    assert [result.measured for result in with_measurements(results, None)] == [None, None]


def test_of_steps_that_were_run_once_no_error_is_known(capsys, recwarn):
    _note_measurements([Measurement(31.0, steps=1), Measurement(29.0, steps=1)])
    assert "1 steps each, standard error unknown (medians)" in capsys.readouterr().err
    _note_measurements([Measurement(1.0, error=0.02, steps=3), Measurement(29.0, steps=1)])
    assert "2 steps each, standard error 2.0 % (medians)" in capsys.readouterr().err
    assert not recwarn.list


def test_more_workers_than_this_machine_has_room_for_are_refused(situate, cpus):
    pytest.importorskip("torch")
    run = situate("plan", MODEL, "--cluster", cpus, *HARDWARE, "--workers", "4000")
    assert (run.status, run.out) == (2, "")
    assert "--workers: 4000 would need 8000 cores, 2 for the devices of each" in run.err
