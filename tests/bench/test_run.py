"""Runs: each a row that is written at once and not made again."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from situate.bench.best_known import BestKnown
from situate.bench.instances import Instance, ReferenceValue
from situate.bench.peers import PEERS
from situate.bench.rows import RowFile
from situate.bench.run import Bench, Runs, check_contenders, solve_with, warm_up
from situate.data.problem import Problem
from situate.errors import ScheduleError, SituateError
from situate.solvers import METHODS
from tests.bench.small import instance, runs
from tests.solvers.families import apart, devices


# Methods and peers by name.
def test_methods_and_peers_have_names_of_their_own():
    assert METHODS.keys() & PEERS.keys() == set()


def test_a_method_is_known_by_its_name():
    check_contenders(["auto", "heft"])
    result = solve_with(instance().make(), "heft", 0.1, seed=3, threads=1)
    assert (result.method, result.seed) == ("heft", 3)


def test_an_unknown_name_has_the_nearest_of_both():
    with pytest.raises(SituateError, match="did you mean 'pymoo_brkga'"):
        check_contenders(["pymo_brkga"])


def test_a_peer_that_is_missing_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("situate.bench.peers.find_spec", lambda name: None)
    with pytest.raises(SituateError, match=r"pymoo_brkga: needs pymoo, .* pip install .* pymoo"):
        check_contenders(["pymoo_brkga"])


# Rows: each run once, refusals included.
def test_every_method_runs_on_every_instance_with_every_seed():
    expected = runs(instance("fork"), instance("chain"), methods=("heft", "single"), seeds=2)
    rows = list(Bench(expected, RowFile(), BestKnown()).run())
    assert len(rows) == len(expected) == 8
    assert len({row.key for row in rows}) == 8


def test_rows_that_are_there_are_not_made_again(tmp_path, monkeypatch):
    path, table = tmp_path / "rows.jsonl", BestKnown()
    first = list(Bench(runs(), RowFile(path), table).run())
    monkeypatch.setattr("situate.bench.run.solve_with", None)
    assert list(Bench(runs(), RowFile(path), table).run()) == first


def test_rows_of_another_program_are_made_again_and_kept(tmp_path, monkeypatch):
    path = tmp_path / "rows.jsonl"
    list(Bench(runs(), RowFile(path), BestKnown()).run())
    path.write_bytes(path.read_bytes().replace(b'"program":"', b'"program":"another'))
    list(Bench(runs(), RowFile(path), BestKnown()).run())
    assert len(RowFile(path).rows) == 2


def test_a_run_that_was_interrupted_has_no_row():
    bench = Bench(runs(seeds=3), RowFile(), BestKnown())
    stopped = iter([False, True])
    assert len(list(bench.run(lambda: next(stopped)))) == 1
    assert len(bench.rows.rows) == 1


def test_what_a_method_refuses_is_a_row_that_says_why():
    [row] = Bench(runs(methods=("expert",)), RowFile(), BestKnown()).run()
    assert row.value is None
    assert not row.feasible
    assert "expert" in row.refused


# Best known values and bounds improve with the runs.
def test_best_values_and_bounds_are_learnt_and_written(tmp_path):
    table = tmp_path / "known.json"
    [row] = Bench(runs(), RowFile(), BestKnown(), table).run()
    [remaining] = BestKnown.read(table).entries.values()
    assert (remaining.best.value, remaining.best.by, remaining.best.seed) == (row.value, "heft", 0)
    assert remaining.bound.value == row.lower_bound
    assert remaining.best.commit == row.made_by.commit


def test_a_plan_that_does_not_fit_teaches_nothing():
    tight = Problem(apart(4, persistent=10), devices(1, 1, memory=15))
    table = BestKnown()
    of_tight = Instance("small", "tight", lambda: tight)
    [row] = Bench(Runs([of_tight], ["heft"], [0.1], [0], 1), RowFile(), table).run()
    assert not row.feasible
    assert row.history == []
    assert not table.entries


def test_published_values_are_learnt_with_their_source():
    table = BestKnown()
    of = instance(reference=ReferenceValue(3.0, "a paper", bound=2.0))
    assert list(Bench(runs(of, methods=()), RowFile(), table).run()) == []
    [remaining] = table.entries.values()
    assert (remaining.best.value, remaining.best.by, remaining.bound.value) == (3.0, "a paper", 2.0)


def test_a_published_value_below_the_bound_is_refused_by_name():
    of = instance(reference=ReferenceValue(0.5, "a paper"))
    with pytest.raises(SituateError, match=r"small: fork: the best value 0.5 \(a paper\)"):
        list(Bench(runs(of), RowFile(), BestKnown()).run())


def test_a_problem_that_cannot_be_made_is_named():
    def make() -> Problem:
        raise SituateError("no such device")

    with pytest.raises(SituateError, match=r"^small: broken: no such device"):
        list(Bench(runs(Instance("small", "broken", make)), RowFile(), BestKnown()).run())


def test_a_plan_that_does_not_do_what_it_says_is_named(monkeypatch):
    def verify(*arguments: object, **options: object) -> None:
        raise ScheduleError("op a begins too early")

    monkeypatch.setattr("situate.schedule.schedule.Schedule.verify", verify)
    bench = Bench(runs(), RowFile(), BestKnown())
    with pytest.raises(SituateError, match=r"^small: fork: heft: op a begins too early"):
        list(bench.run())
    assert bench.rows.rows == []


# Concurrent and killed processes.
def test_two_processes_may_improve_one_table(tmp_path):
    table = tmp_path / "known.json"
    list(Bench(runs(instance("fork")), RowFile(), BestKnown(), table).run())
    list(Bench(runs(instance("chain")), RowFile(), BestKnown(), table).run())
    assert len(BestKnown.read(table).entries) == 2


KILLED = """
from situate.bench.best_known import BestKnown
from situate.bench.rows import RowFile
from situate.bench.run import Bench
from tests.bench.small import runs
list(Bench(runs(seeds=100_000), RowFile("rows.jsonl"), BestKnown(), "known.json").run())
"""


def test_a_process_that_is_killed_leaves_every_row_but_its_last(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen([sys.executable, "-c", KILLED], cwd=tmp_path, env=environment)
    path = tmp_path / "rows.jsonl"
    while not (path.exists() and path.stat().st_size > 10_000):
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    lines = path.read_bytes().count(b"\n")
    assert len(RowFile(path).rows) == lines > 0
    assert len(BestKnown.read(tmp_path / "known.json").entries) == 1


def test_the_history_of_a_row_falls_to_its_value():
    [row] = Bench(runs(methods=("auto",)), RowFile(), BestKnown()).run()
    values = [value for _, value in row.history]
    assert values == sorted(values, reverse=True)
    assert values[-1] == row.value


def test_methods_that_do_not_apply_to_the_first_run_are_no_error():
    warm_up(["expert", "heft"])
