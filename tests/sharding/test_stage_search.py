"""Stages of least time, and bounds of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from situate.errors import SituateError
from situate.sharding import read_stage_problem, solve_stages
from situate.sharding import stage_search as module
from tests.sharding.stage_problems import (
    least_value,
    random_content,
    random_problem,
    stage_figures,
    write,
)


# Trying everything judges values and bounds.
@pytest.mark.parametrize("tight", [0.4, 0.7, 1.5])
@pytest.mark.parametrize("seed", range(25))
def test_small_problems_are_solved(tmp_path, seed, tight):
    content = random_content(seed, tight=tight)
    plan = solve_stages(read_stage_problem(write(tmp_path / "a.json", content)))
    least = least_value(content)
    assert plan.value == pytest.approx(least, rel=1e-12)
    assert plan.bound == pytest.approx(least, rel=3e-9)
    assert plan.gap == (0 if plan.feasible else math.inf)
    assert plan.feasible == math.isfinite(least)


@pytest.mark.parametrize("seed", range(10))
def test_the_figures_of_stages_are_those_of_the_file(tmp_path, seed):
    content = random_content(seed, layers=8, devices=6, tight=0.9)
    plan = solve_stages(read_stage_problem(write(tmp_path / "a.json", content)))
    nodes = {node["id"]: node for node in content["nodes"]}
    for stage, figures in zip(plan.stages, plan.figures, strict=True):
        rows = {layer: nodes[layer]["TMPCs"][str(stage.tensor)] for layer in stage.layers}
        pairs = zip(rows.items(), stage.options, strict=True)
        options = {
            layer: next(row for row in options if row["id"] == name)
            for (layer, options), name in pairs
        }
        seconds, memory = stage_figures(content, options, stage.data, figures.batches)
        assert figures.seconds == pytest.approx(seconds)
        assert figures.memory == pytest.approx(memory)
        assert memory <= content["maxMemoryPerDevice"]


# Where there are more downsets than the search lists, it has plans without a proof.
def test_a_search_over_few_downsets_keeps_a_valid_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ENUMERATED", 3)
    for seed in range(10):
        content = random_content(seed, tight=1.5)
        plan = solve_stages(read_stage_problem(write(tmp_path / "a.json", content)))
        assert plan.bound <= least_value(content) <= plan.value


def test_few_downsets_before_all_change_nothing(tmp_path, monkeypatch):
    problem = random_problem(tmp_path, 5, layers=7, devices=6, tight=0.8)
    value = solve_stages(problem).value
    monkeypatch.setattr(module, "FEW", (4, 9))
    assert solve_stages(problem).value == value


# Layers of equal and of odd bytes: the knapsack of options is exact.
def test_options_are_a_knapsack_that_greed_does_not_solve(tmp_path):
    def node(layer, slow, saved):
        base = {"parameterSize": 0, "memoryUsageA": 0, "syncTimeFw": {}, "syncTimeBw": {}}
        fast = base | {"id": "fast", "timePerSample": 1, "memoryUsageB": 10}
        lean = base | {"id": "lean", "timePerSample": 1 + slow, "memoryUsageB": 10 - saved}
        return {"id": layer, "TMPCs": {"1": [fast, lean]}}

    # To save 6 bytes, the layer with the best ratio and another cost 8; the two others cost 6.
    content = {
        "maxDevices": 1,
        "maxMemoryPerDevice": 24,
        "bandwidth": 1,
        "mbsInBatch": 1,
        "nodes": [node(0, 4, 5), node(1, 3, 3), node(2, 3, 3)],
        "edges": [],
    }
    plan = solve_stages(read_stage_problem(write(tmp_path / "a.json", content)))
    assert plan.value == 9
    assert plan.stages[0].options == ("fast", "lean", "lean")


def test_too_many_choices_of_options_leave_a_gap_but_no_wrong_bound(tmp_path):
    rng = np.random.default_rng(0)
    content = random_content(0, layers=30, devices=1)
    for node in content["nodes"]:
        row = node["TMPCs"]["1"][0]
        saved = float(rng.integers(10**8, 2 * 10**8))
        fast = row | {"id": "fast", "timePerSample": 1.0, "memoryUsageB": 1e9}
        lean = row | {"id": "lean", "timePerSample": 1 + saved / 1e8, "memoryUsageB": 1e9 - saved}
        node["TMPCs"] = {"1": [fast, lean]}
    content["maxMemoryPerDevice"] = 30e9 - 15e8
    plan = solve_stages(read_stage_problem(write(tmp_path / "a.json", content)))
    assert plan.feasible
    assert 0 <= plan.gap < 1e-4


# Limits end the search.
def test_no_time_gives_no_stages(tmp_path):
    plan = solve_stages(random_problem(tmp_path, 0, tight=1.5), time_limit=0)
    assert (plan.stages, plan.value, plan.gap) == ((), math.inf, math.inf)
    assert math.isfinite(plan.bound)


def test_a_negative_limit_is_refused(tmp_path):
    with pytest.raises(SituateError, match="time_limit: must not be negative"):
        solve_stages(random_problem(tmp_path, 0), time_limit=-1)


def test_ctrl_c_keeps_the_best_stages(tmp_path, monkeypatch):
    class Interrupted(module.StageDivision):
        calls = 0

        def divide(self, *args, **options):
            Interrupted.calls += 1
            if Interrupted.calls == 3:
                raise KeyboardInterrupt
            return super().divide(*args, **options)

    monkeypatch.setattr(module, "StageDivision", Interrupted)
    plan = solve_stages(random_problem(tmp_path, 3, tight=1.5))
    assert plan.interrupted
    assert plan.feasible


def test_layers_that_take_no_time_are_a_plan(tmp_path):
    content = random_content(0, tight=1.5)
    content["edges"] = []
    for node in content["nodes"]:
        for rows in node["TMPCs"].values():
            for row in rows:
                row |= {"timePerSample": 0, "parameterSize": 0, "syncTimeFw": {}, "syncTimeBw": {}}
    plan = solve_stages(read_stage_problem(write(tmp_path / "a.json", content)))
    assert (plan.value, plan.gap) == (0, 0)


def test_layers_without_a_common_degree_are_in_stages_of_their_own(tmp_path):
    content = random_content(1, layers=3, tight=9.0)
    for node, degree in zip(content["nodes"], ("1", "2", "1"), strict=True):
        options = next(iter(node["TMPCs"].values()))
        node["TMPCs"] = {degree: options}
    plan = solve_stages(read_stage_problem(write(tmp_path / "problem.json", content)))
    assert len(plan.stages) >= 2
    assert plan.value == pytest.approx(least_value(content))


def test_a_layer_that_needs_more_devices_than_there_are_fits_nowhere(tmp_path):
    content = random_content(0, devices=1, tight=3.0)
    node = content["nodes"][0]
    node["TMPCs"] = {"2": node["TMPCs"]["1"]}
    plan = solve_stages(read_stage_problem(write(tmp_path / "a.json", content)))
    assert (plan.stages, plan.bound) == ((), math.inf)
