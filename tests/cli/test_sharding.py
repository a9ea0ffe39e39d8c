"""Plans of sharding problems, and of stages, from the command line."""

from __future__ import annotations

import json

import pytest

from situate.cli.terminal import BAD_INPUT, INFEASIBLE
from situate.sharding import read_sharding_problem, read_stage_problem, solve_stages
from tests.sharding import problems, stage_problems


@pytest.fixture
def sharding(tmp_path):
    return problems.write(tmp_path / "ops.json", problems.content(problems.random_problem(0)))


@pytest.fixture
def stages(tmp_path):
    return stage_problems.write(
        tmp_path / "layers.json", stage_problems.random_content(1, tight=1.5)
    )


# The plan is printed, as a table or as JSON, and written.
def test_a_plan_has_cost_bound_and_memory(situate, sharding):
    run = situate("plan", sharding, "--evaluations", "60")
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


def test_json_holds_the_strategies(situate, sharding):
    run = situate("plan", sharding, "--evaluations", "60", "--json")
    figures = run.json
    problem = read_sharding_problem(sharding)
    assert run.status == 0
    assert figures["cost"] == problem.cost(figures["strategies"]) == problems.least_cost(problem)
    assert figures["rounds"] <= 60


def test_a_file_is_the_same_each_time(situate, sharding, tmp_path):
    plans = []
    for name in ("one.json", "other.json"):
        situate("plan", sharding, "--evaluations", "20", "--out", tmp_path / name)
        plan = json.loads((tmp_path / name).read_text())
        plans.append({key: value for key, value in plan.items() if key != "seconds"})
    assert plans[0] == plans[1]
    assert plans[0]["format"] == "situate-sharding"


def test_a_plan_has_its_time_and_its_stages(situate, stages):
    run = situate("plan", stages)
    assert run.status == 0
    labels = [line.split("  ")[0] for line in run.out.splitlines()]
    assert labels[:7] == ["layers", "problem", "time", "lower bound", "gap", "devices", "search"]
    assert "replicas" in run.out


def test_json_and_file_hold_the_stages(situate, stages, tmp_path):
    run = situate("plan", stages, "--json", "--out", tmp_path / "plan.json")
    plan = solve_stages(read_stage_problem(stages))
    written = json.loads((tmp_path / "plan.json").read_text())
    assert run.status == 0
    assert run.json["value"] == written["value"] == plan.value
    assert run.json["stages"] == written["stages"]
    assert written["stages"][0]["layers"] == [*plan.stages[0].layers]
    assert written["format"] == "situate-stages"


# A problem without a plan that fits says so.
def test_strategies_that_do_not_fit_have_a_status_of_their_own(situate, tmp_path):
    problem = problems.content(problems.random_problem(0))
    problem["problem"]["usage_limit"] = 0
    problem["problem"]["nodes"]["usages"] = [
        [9 for _ in row] for row in problem["problem"]["nodes"]["usages"]
    ]
    run = situate("plan", problems.write(tmp_path / "a.json", problem), "--evaluations", "5")
    assert run.status == INFEASIBLE
    assert "none: these strategies do not fit" in run.out


def test_no_stages_that_fit_have_a_status_of_their_own(situate, tmp_path):
    content = stage_problems.random_content(1) | {"maxMemoryPerDevice": 1e-3}
    run = situate("plan", stage_problems.write(tmp_path / "a.json", content))
    assert run.status == INFEASIBLE
    assert "none: no stages fit in memory" in run.out
    figures = situate("plan", tmp_path / "a.json", "--json").json
    assert (figures["feasible"], figures["value"], figures["bound"]) == (False, None, None)


# Options of other models, and broken files, are refused in one line.
@pytest.mark.parametrize(
    ("kind", "option"),
    [
        ("sharding", ["--cluster", "k80-4"]),
        ("sharding", ["--slices", "2"]),
        ("sharding", ["--quant", "F16"]),
        ("stages", ["--cluster", "k80-4"]),
        ("stages", ["--evaluations", "5"]),
        ("stages", ["--seed", "1"]),
    ],
)
def test_options_of_other_models_are_refused(situate, request, kind, option):
    run = situate("plan", request.getfixturevalue(kind), *option)
    problem = {"sharding": "a sharding problem", "stages": "a problem of stages"}[kind]
    assert run.status == BAD_INPUT
    assert run.err.startswith(f"error: {option[0]}: has no meaning for {problem}")


@pytest.mark.parametrize(
    "content", [{"problem": {"nodes": 3}}, {"maxDevices": 3, "nodes": [{"TMPCs": 3}]}]
)
def test_a_broken_file_is_named(situate, tmp_path, content):
    path = problems.write(tmp_path / "a.json", content)
    run = situate("plan", path)
    assert run.status == BAD_INPUT
    assert str(path) in run.err


@pytest.mark.parametrize("kind", ["sharding", "stages"])
def test_the_problem_itself_is_not_overwritten(situate, request, kind):
    path = request.getfixturevalue(kind)
    run = situate("plan", path, "--out", path)
    assert run.status == BAD_INPUT
    assert "used twice" in run.err
