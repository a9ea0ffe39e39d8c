"""Plans of sharding problems from the command line."""

from __future__ import annotations

import json

import pytest

from situate.cli.terminal import BAD_INPUT, INFEASIBLE
from situate.sharding import read_sharding_problem
from tests.sharding.problems import content, least_cost, random_problem, write


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "problem.json", content(random_problem(0)))


# The plan is printed, as a table or as JSON, and written.
def test_a_plan_has_cost_bound_and_memory(situate, path):
    run = situate("plan", path, "--evaluations", "60")
    assert run.status == 0
    assert [line.split("  ")[0] for line in run.out.splitlines()] == [
        "random 0",
        "problem",
        "cost",
        "lower bound",
        "gap",
        "peak memory",
        "search",
    ]


def test_json_holds_the_strategies(situate, path):
    run = situate("plan", path, "--evaluations", "60", "--json")
    figures = run.json
    problem = read_sharding_problem(path)
    assert run.status == 0
    assert figures["cost"] == problem.cost(figures["strategies"]) == least_cost(problem)
    assert figures["rounds"] <= 60


def test_a_file_is_the_same_each_time(situate, path, tmp_path):
    plans = []
    for name in ("one.json", "other.json"):
        situate("plan", path, "--evaluations", "20", "--out", tmp_path / name)
        plan = json.loads((tmp_path / name).read_text())
        plans.append({key: value for key, value in plan.items() if key != "seconds"})
    assert plans[0] == plans[1]
    assert plans[0]["format"] == "situate-sharding"


# A problem without a plan that fits says so.
def test_what_does_not_fit_has_a_status_of_its_own(situate, tmp_path):
    problem = content(random_problem(0))
    problem["problem"]["usage_limit"] = 0
    problem["problem"]["nodes"]["usages"] = [
        [9 for _ in row] for row in problem["problem"]["nodes"]["usages"]
    ]
    run = situate("plan", write(tmp_path / "a.json", problem), "--evaluations", "5")
    assert run.status == INFEASIBLE
    assert "none: these strategies do not fit" in run.out


# Options of other models, and broken files, are refused in one line.
@pytest.mark.parametrize("option", [["--cluster", "k80-4"], ["--slices", "2"], ["--quant", "F16"]])
def test_options_of_other_models_are_refused(situate, path, option):
    run = situate("plan", path, *option)
    assert run.status == BAD_INPUT
    assert run.err.startswith(f"error: {option[0]}: has no meaning for a sharding problem")


def test_a_broken_file_is_named(situate, tmp_path):
    path = write(tmp_path / "a.json", {"problem": {"nodes": 3}})
    run = situate("plan", path)
    assert run.status == BAD_INPUT
    assert str(path) in run.err


def test_the_problem_itself_is_not_overwritten(situate, path):
    run = situate("plan", path, "--out", path)
    assert run.status == BAD_INPUT
    assert "used twice" in run.err
