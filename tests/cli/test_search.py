"""A search at a terminal: its budget, its progress, and Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from situate.plan import Plan
from situate.solvers import solve


def interrupted_solve(solve):
    """A solve whose search is interrupted at its first progress."""

    def run(problem, method, *, on_progress, **options):
        def interrupt(progress):
            os.kill(os.getpid(), signal.SIGINT)

        return solve(problem, method, on_progress=interrupt, **options)

    return run


def slow_solve(solve):
    """A solve that lets the screen catch up with its last progress."""

    def run(*arguments, **options):
        result = solve(*arguments, **options)
        time.sleep(0.2)
        return result

    return run


@pytest.fixture
def interrupt(monkeypatch):
    """Makes Ctrl-C come during every search."""
    monkeypatch.setattr("situate.cli.search.solve", interrupted_solve(solve))


def test_the_best_plan_so_far_is_printed_and_written(situate, model, pair, interrupt):
    run = situate("plan", model, "--cluster", pair, "--out", "plan.json", "--json")
    assert run.status == 0
    assert run.json["value"] > 0
    assert "interrupted" in run.err
    assert Plan.read("plan.json").value == run.json["value"]


def test_a_comparison_leaves_out_the_methods_that_follow(situate, model, pair, interrupt):
    run = situate("compare", model, "--cluster", pair, "--json")
    assert [row["method"] for row in run.json["methods"]] == ["single"]
    assert "left out" in run.err


def test_before_there_is_a_plan_nothing_is_written(situate, model, pair, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("situate.cli.inputs.find_model", interrupt)
    run = situate("plan", model, "--cluster", pair, "--out", "plan.json")
    assert (run.status, run.out, run.err) == (130, "", "interrupted\n")
    assert not Path("plan.json").exists()


def test_ctrl_c_means_what_it_did_after_a_search(situate, model, pair):
    before = signal.getsignal(signal.SIGINT)
    situate("plan", model, "--cluster", pair, "--time-limit", "0.1")
    assert signal.getsignal(signal.SIGINT) is before


def test_progress_on_a_terminal_shows_the_best_value(situate, model, pair, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("situate.cli.search.solve", slow_solve(solve))
    run = situate("plan", model, "--cluster", pair, "--time-limit", "0.1", "--json")
    assert re.search(r"auto: best [34]\.00 s, bound 3\.00 s, [\d,]+ evaluations", run.err)
    assert run.json["feasible"]
