"""A search at a terminal: its budget, its progress, and Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from situate.results.plan import Plan
from situate.solvers import solve

POST = ("--method", "post", "--samples", "36")


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


def test_an_explained_search_says_that_it_was_interrupted(situate, model, pair, interrupt):
    run = situate("explain", model, "--cluster", pair)
    assert run.status == 0
    assert "interrupted: this is the best plan so far" in run.err


def test_a_comparison_leaves_out_the_methods_that_follow(situate, model, pair, interrupt):
    run = situate("compare", model, "--cluster", pair, "--json")
    assert [row["method"] for row in run.json["methods"]] == ["single"]
    assert "left out" in run.err


def test_learning_keeps_what_it_measured_and_says_how_to_go_on(situate, model, pair, monkeypatch):
    arguments = ("plan", model, "--cluster", pair, *POST, "--study", "s.study", "--json")
    with monkeypatch.context() as patch:
        patch.setattr("situate.cli.search.solve", interrupted_solve(solve))
        run = situate(*arguments)
    assert run.json["samples"]["count"] == 12
    assert "interrupted: this is the best plan so far; the same command goes on from 's.study'" in (
        run.err
    )
    resumed = situate(*arguments).json
    Path("s.study").unlink()
    assert resumed["samples"] == situate(*arguments).json["samples"]


def test_without_a_study_learning_names_the_option(situate, model, pair, interrupt):
    run = situate("plan", model, "--cluster", pair, *POST)
    assert "with --study it could go on from there" in run.err


def test_a_comparison_keeps_what_a_method_had_learnt(situate, model, pair, monkeypatch):
    def run(problem, method, **options):
        chosen = interrupted_solve(solve) if method == "post" else solve
        return chosen(problem, method, **options)

    monkeypatch.setattr("situate.cli.search.solve", run)
    options = ("--methods", "post,ppo,heft", "--samples", "36", "--study", "st", "--json")
    said = situate("compare", model, "--cluster", pair, *options)
    assert [row["method"] for row in said.json["methods"]] == ["single", "post", "heft"]
    assert "interrupted during post: " in said.err
    assert "goes on from 'st'" in said.err


def test_a_method_interrupted_before_its_first_plan_costs_no_other_its_own(
    situate, model, pair, monkeypatch
):
    def run(problem, method, **options):
        if method == "post":
            os.kill(os.getpid(), signal.SIGINT)
        return solve(problem, method, **options)

    monkeypatch.setattr("situate.cli.search.solve", run)
    said = situate("compare", model, "--cluster", pair, "--methods", "heft,post", "--json")
    assert [row["method"] for row in said.json["methods"]] == ["single", "heft"]


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


def test_progress_on_a_terminal_shows_how_a_method_learns(situate, fan, pair, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("situate.cli.search.solve", slow_solve(solve))
    run = situate("plan", fan, "--cluster", pair, *POST, "--json")
    assert re.search(
        r"post: 36 of 36 samples, best [45]\.00 s, bound 3\.50 s, mean of the last 60 [45]", run.err
    )
