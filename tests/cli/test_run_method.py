"""Methods that learn, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from situate.cli.run_method import resumption
from situate.data import graph_json
from situate.study import Study
from tests.cli.conftest import CLUSTER, diamond
from tests.writers.test_tensorboard import read

POST = ("--method", "post", "--samples", "72")


@pytest.fixture
def narrow_pair(tmp_path: Path) -> str:
    """Two devices that hold some plans of the fan, and not all of it on one."""
    path = tmp_path / "narrow.toml"
    path.write_text(CLUSTER.format(memory=4_200))
    return str(path)


def test_json_sums_up_the_samples(situate, fan, pair):
    samples = situate("plan", fan, "--cluster", pair, *POST, "--json").json["samples"]
    assert (samples["count"], samples["failures"]) == (72, 0)
    assert samples["best"] <= samples["first_60_best"] <= samples["last_60_mean"]


def test_other_methods_have_no_samples(situate, model, pair):
    run = situate("plan", model, "--cluster", pair, "--method", "heft", "--json")
    assert run.json["samples"] is None


def test_off_a_terminal_nothing_is_said(situate, model, pair):
    assert situate("plan", model, "--cluster", pair, *POST).err == ""


def test_evaluations_end_it_too(situate, fan, pair):
    arguments = ("--method", "post", "--evaluations", "20", "--json")
    assert situate("plan", fan, "--cluster", pair, *arguments).json["samples"]["count"] == 20


def test_failures_are_said(situate, fan, narrow_pair):
    run = situate("plan", fan, "--cluster", narrow_pair, *POST, "--json")
    failures = run.json["samples"]["failures"]
    assert 0 < failures < 72
    assert f"post: {failures} of 72 placements did not run; each counted as 100 s" in run.err


def test_if_nothing_ran_it_says_so_and_json_stays_json(situate, model, tight_pair):
    run = situate("plan", model, "--cluster", tight_pair, *POST, "--curves", "c.svg", "--json")
    assert run.status == 3
    assert "none of 72 placements ran (out of memory)" in run.err
    assert run.json["samples"]["failures"] == 72
    assert run.json["samples"]["best"] is None
    assert "none ran" in Path("c.svg").read_text()


def test_noise_so_large_that_nothing_can_be_learnt_does_no_harm(situate, model, pair):
    run = situate("plan", model, "--cluster", pair, *POST, "--noise", "1e308", "--json")
    assert run.status == 0
    assert run.json["value"] <= 4.01


def test_settings_and_grouping_reach_the_solver(situate, model, pair):
    options = ("--settings", "paper", "--grouping", "heavy-edge", "--groups", "3")
    run = situate("plan", model, "--cluster", pair, *POST, *options, "--study", "s.study")
    assert run.status == 0
    header = Study.read("s.study").header
    names = ("settings", "grouping", "groups", "samples")
    assert [header[name] for name in names] == ["paper", "heavy-edge", "3", "72"]


def test_a_study_that_is_complete_gives_its_result_again(situate, fan, pair):
    arguments = ("plan", fan, "--cluster", pair, *POST, "--study", "s.study", "--json")
    first, again = situate(*arguments).json, situate(*arguments).json
    assert again["samples"] == first["samples"]
    assert len(Study.read("s.study")) == 72


def test_a_study_of_another_problem_is_refused(situate, tmp_path, model, pair):
    situate("plan", model, "--cluster", pair, *POST, "--study", "s.study")
    graph_json.write(diamond(name="other"), tmp_path / "other.json")
    run = situate("plan", "other.json", "--cluster", pair, *POST, "--study", "s.study")
    assert (run.status, run.out) == (2, "")
    assert "s.study: the study has graph 'diamond" in run.err


def test_a_time_limit_says_how_far_it_got_and_how_to_go_on(situate, fan, pair):
    endless = ("--method", "post", "--samples", 10**6, "--time-limit", "0.5")
    run = situate("plan", fan, "--cluster", pair, *endless)
    assert "of 1,000,000 samples; with --study it could go on from there" in run.err
    assert resumption(Path("s.study")) == "the same command goes on from 's.study'"


def test_tensorboard_shows_every_batch(situate, fan, pair):
    pytest.importorskip("tensorboard")
    situate("plan", fan, "--cluster", pair, *POST, "--tensorboard", "runs/a")
    shown = read(Path("runs/a/post"))
    assert [step for step, _ in shown["seconds/best"]] == list(range(12, 73, 12))


def test_curves_are_drawn_among_their_levels(situate, model, pair):
    pytest.importorskip("matplotlib")
    run = situate("plan", model, "--cluster", pair, *POST, "--curves", "c.svg")
    assert "wrote c.svg" in run.err
    text = Path("c.svg").read_text()
    for label in ("post", "single", "lower bound"):
        assert f"<!-- {label}  " in text


def test_the_plan_written_is_the_best_that_was_measured(situate, model, pair):
    run = situate("plan", model, "--cluster", pair, *POST, "--out", "plan.json", "--json")
    assert json.loads(Path("plan.json").read_text())["value"] == run.json["samples"]["best"]


def test_settings_reach_a_search_that_does_not_learn(situate, model, pair):
    plan = ("plan", model, "--cluster", pair, "--method", "brkga", "--evaluations", "50", "--json")
    assert situate(*plan, "--settings", "paper").json["decoder"] == "serial"
    assert situate(*plan).json["decoder"] == "eager"
