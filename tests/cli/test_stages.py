"""Plans of stages from the command line."""

from __future__ import annotations

import json

import pytest

from situate.cli.terminal import BAD_INPUT, INFEASIBLE
from situate.sharding import read_stage_problem, solve_stages
from tests.sharding.stage_problems import random_content, write


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "problem.json", random_content(1, tight=1.5))


# The stages are printed, as a table or as JSON, and written.
def test_a_plan_has_its_time_and_its_stages(situate, path):
    run = situate("plan", path)
    assert run.status == 0
    labels = [line.split("  ")[0] for line in run.out.splitlines()]
    assert labels[:7] == ["problem", "problem", "time", "lower bound", "gap", "devices", "search"]
    assert "replicas" in run.out


def test_json_and_file_hold_the_stages(situate, path, tmp_path):
    run = situate("plan", path, "--json", "--out", tmp_path / "plan.json")
    plan = solve_stages(read_stage_problem(path))
    written = json.loads((tmp_path / "plan.json").read_text())
    assert run.status == 0
    assert run.json["value"] == written["value"] == plan.value
    assert run.json["stages"] == written["stages"]
    assert written["stages"][0]["layers"] == [*plan.stages[0].layers]
    assert written["format"] == "situate-stages"


# A problem without stages that fit says so.
def test_no_stages_that_fit_have_a_status_of_their_own(situate, tmp_path):
    content = random_content(1) | {"maxMemoryPerDevice": 1e-3}
    run = situate("plan", write(tmp_path / "a.json", content))
    assert run.status == INFEASIBLE
    assert "none: no stages fit in memory" in run.out
    figures = situate("plan", tmp_path / "a.json", "--json").json
    assert (figures["feasible"], figures["value"], figures["bound"]) == (False, None, None)


# Options of other models, and broken files, are refused in one line.
@pytest.mark.parametrize(
    "option", [["--cluster", "k80-4"], ["--evaluations", "5"], ["--seed", "1"]]
)
def test_options_of_other_models_are_refused(situate, path, option):
    run = situate("plan", path, *option)
    assert run.status == BAD_INPUT
    assert run.err.startswith(f"error: {option[0]}: has no meaning for a problem of stages")


def test_a_broken_file_is_named(situate, tmp_path):
    path = write(tmp_path / "a.json", {"maxDevices": 3, "nodes": [{"TMPCs": 3}]})
    run = situate("plan", path)
    assert run.status == BAD_INPUT
    assert str(path) in run.err


def test_the_problem_itself_is_not_overwritten(situate, path):
    run = situate("plan", path, "--out", path)
    assert run.status == BAD_INPUT
    assert "used twice" in run.err
