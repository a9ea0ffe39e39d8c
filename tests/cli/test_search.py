"""The run of a method at a terminal: its progress, its notes, and Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from situate.cli.search import resumption
from situate.data import graph_json
from situate.results.plan import Plan
from situate.solvers import solve
from situate.study import Study
from tests.cli.conftest import CLUSTER, diamond
from tests.writers.test_tensorboard import read

POST = ("--method", "post", "--samples", "36")

LONG_POST = ("--method", "post", "--samples", "72")


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


# Ctrl-C keeps the best plan so far.
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
        patched = interrupted_solve(solve) if method == "post" else solve
        return patched(problem, method, **options)

    monkeypatch.setattr("situate.cli.search.solve", run)
    options = ("--methods", "post,ppo,heft", "--samples", "36", "--study", "st", "--json")
    answer = situate("compare", model, "--cluster", pair, *options)
    assert [row["method"] for row in answer.json["methods"]] == ["single", "post", "heft"]
    assert "interrupted during post: " in answer.err
    assert "goes on from 'st'" in answer.err


def test_a_method_interrupted_before_its_first_plan_costs_no_other_its_own(
    situate, model, pair, monkeypatch
):
    def run(problem, method, **options):
        if method == "post":
            os.kill(os.getpid(), signal.SIGINT)
        return solve(problem, method, **options)

    monkeypatch.setattr("situate.cli.search.solve", run)
    answer = situate("compare", model, "--cluster", pair, "--methods", "heft,post", "--json")
    assert [row["method"] for row in answer.json["methods"]] == ["single", "heft"]


def test_before_there_is_a_plan_nothing_is_written(situate, model, pair, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("situate.cli.inputs.load_graph", interrupt)
    run = situate("plan", model, "--cluster", pair, "--out", "plan.json")
    assert (run.status, run.out, run.err) == (130, "", "interrupted\n")
    assert not Path("plan.json").exists()


def test_ctrl_c_means_what_it_did_after_a_search(situate, model, pair):
    before = signal.getsignal(signal.SIGINT)
    situate("plan", model, "--cluster", pair, "--time-limit", "0.1")
    assert signal.getsignal(signal.SIGINT) is before


# Progress on a terminal.
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


# Methods that learn report their samples, and resume from their studies.
@pytest.fixture
def narrow_pair(tmp_path: Path) -> str:
    """Two devices that hold some plans of the fan, and not all of it on one."""
    path = tmp_path / "narrow.toml"
    path.write_text(CLUSTER.format(memory=4_200))
    return str(path)


def test_json_sums_up_the_samples(situate, fan, pair):
    samples = situate("plan", fan, "--cluster", pair, *LONG_POST, "--json").json["samples"]
    assert (samples["count"], samples["failures"]) == (72, 0)
    assert samples["best"] <= samples["first_60_best"] <= samples["last_60_mean"]


def test_other_methods_have_no_samples(situate, model, pair):
    run = situate("plan", model, "--cluster", pair, "--method", "heft", "--json")
    assert run.json["samples"] is None


def test_off_a_terminal_nothing_is_said(situate, model, pair):
    assert situate("plan", model, "--cluster", pair, *LONG_POST).err == ""


def test_evaluations_end_it_too(situate, fan, pair):
    arguments = ("--method", "post", "--evaluations", "20", "--json")
    assert situate("plan", fan, "--cluster", pair, *arguments).json["samples"]["count"] == 20


def test_failures_are_said(situate, fan, narrow_pair):
    run = situate("plan", fan, "--cluster", narrow_pair, *LONG_POST, "--json")
    failures = run.json["samples"]["failures"]
    assert 0 < failures < 72
    assert f"post: {failures} of 72 placements did not run; each counted as 100 s" in run.err


def test_if_nothing_ran_it_says_so_and_json_stays_json(situate, model, tight_pair):
    run = situate("plan", model, "--cluster", tight_pair, *LONG_POST, "--curves", "c.svg", "--json")
    assert run.status == 3
    assert "none of 72 placements ran (out of memory)" in run.err
    assert run.json["samples"]["failures"] == 72
    assert run.json["samples"]["best"] is None
    assert "none ran" in Path("c.svg").read_text()


def test_noise_so_large_that_nothing_can_be_learnt_does_no_harm(situate, model, pair):
    run = situate("plan", model, "--cluster", pair, *LONG_POST, "--noise", "1e308", "--json")
    assert run.status == 0
    assert run.json["value"] <= 4.01


def test_settings_and_grouping_reach_the_solver(situate, model, pair):
    options = ("--settings", "paper", "--grouping", "heavy-edge", "--groups", "3")
    run = situate("plan", model, "--cluster", pair, *LONG_POST, *options, "--study", "s.study")
    assert run.status == 0
    header = Study.read("s.study").header
    names = ("settings", "grouping", "groups", "samples")
    assert [header[name] for name in names] == ["paper", "heavy-edge", "3", "72"]


def test_a_study_that_is_complete_gives_its_result_again(situate, fan, pair):
    arguments = ("plan", fan, "--cluster", pair, *LONG_POST, "--study", "s.study", "--json")
    first, again = situate(*arguments).json, situate(*arguments).json
    assert again["samples"] == first["samples"]
    assert len(Study.read("s.study")) == 72


def test_a_study_of_another_problem_is_refused(situate, tmp_path, model, pair):
    situate("plan", model, "--cluster", pair, *LONG_POST, "--study", "s.study")
    graph_json.write(diamond(name="other"), tmp_path / "other.json")
    run = situate("plan", "other.json", "--cluster", pair, *LONG_POST, "--study", "s.study")
    assert (run.status, run.out) == (2, "")
    assert "s.study: the study has graph 'diamond" in run.err


def test_a_time_limit_says_how_far_it_got_and_how_to_go_on(situate, fan, pair):
    endless = ("--method", "post", "--samples", 10**6, "--time-limit", "0.5")
    run = situate("plan", fan, "--cluster", pair, *endless)
    assert "of 1,000,000 samples; with --study it could go on from there" in run.err
    assert resumption(Path("s.study")) == "the same command goes on from 's.study'"


def test_tensorboard_shows_every_batch(situate, fan, pair):
    pytest.importorskip("tensorboard")
    situate("plan", fan, "--cluster", pair, *LONG_POST, "--tensorboard", "runs/a")
    scalars = read(Path("runs/a/post"))
    assert [step for step, _ in scalars["seconds/best"]] == list(range(12, 73, 12))


def test_curves_are_drawn_among_their_levels(situate, model, pair):
    pytest.importorskip("matplotlib")
    run = situate("plan", model, "--cluster", pair, *LONG_POST, "--curves", "c.svg")
    assert "wrote c.svg" in run.err
    text = Path("c.svg").read_text()
    for label in ("post", "single", "lower bound"):
        assert f"<!-- {label}  " in text


def test_the_plan_written_is_the_best_that_was_measured(situate, model, pair):
    run = situate("plan", model, "--cluster", pair, *LONG_POST, "--out", "plan.json", "--json")
    assert json.loads(Path("plan.json").read_text())["value"] == run.json["samples"]["best"]


def test_settings_reach_a_search_that_does_not_learn(situate, model, pair):
    plan = ("plan", model, "--cluster", pair, "--method", "brkga", "--evaluations", "50", "--json")
    assert situate(*plan, "--settings", "paper").json["decoder"] == "serial"
    assert situate(*plan).json["decoder"] == "eager"
