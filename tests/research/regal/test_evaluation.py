"""REGAL's comparison of methods on a set of graphs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("safetensors")
pytest.importorskip("torch")

from benchmarks.lib.record import read_record
from research.regal import actions, compared, evaluation, speed, tables
from situate import RULES, Cluster, Problem
from situate.bench.families.regal import MODELS, synthetic
from situate.data import graph_json
from situate.readers import read
from situate.solvers.evolutionary.regal import weights
from situate.solvers.evolutionary.regal.settings import SETTINGS
from situate.solvers.exact import cp_sat
from situate.solvers.exact.variables import size_of_model
from tests.solvers.evolutionary.regal.test_weights import about, policy

EVALUATIONS = 60


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph of each model in `test`, and weights of both kinds of networks that
    learnt nothing."""
    folder = tmp_path_factory.mktemp("regal")
    (folder / "test").mkdir()
    for i, model in enumerate(MODELS):
        graph_json.write(synthetic(model, 12, i), folder / "test" / f"{model}.json")
    for name, settings in (("small", "paper_synthetic"), ("sequence", "gas")):
        of = about(SETTINGS[settings, "time"], objective="time", devices=2)  # type: ignore[index]
        weights.write(folder / f"{name}.safetensors", policy(of), of)
    return folder


@pytest.fixture(scope="module")
def found(graphs: Path) -> dict[str, Any]:
    """The record of these graphs."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(evaluation, "RESULTS", graphs / "results")
        evaluation.main(
            [
                *(str(graphs / "test"), "--name", "synthetic_time", "--workers", "1"),
                *("--weights", f"small={graphs / 'small.safetensors'}"),
                f"sequence={graphs / 'sequence.safetensors'}",
                *("--evaluations", str(EVALUATIONS), "--limits", "30", str(EVALUATIONS)),
            ]
        )
    return dict(read_record(graphs / "results" / "regal_synthetic_time.json"))


def test_every_method_is_beside_the_papers_figure(found: dict[str, Any]) -> None:
    rows = {row["method"]: row for row in found["tables"]["methods"]}
    assert rows["regal, small"]["paper_improvement_%"] == 4.81
    assert rows["gas, sequence"]["paper_gap_%"] == 23.48
    assert rows["partition_dfs"]["paper_gap_%"] == 93.66
    assert rows["auto"]["paper_gap_%"] is None
    assert rows["brkga, ten times as long"]["paper_improvement_%"] is None
    assert set(found["tables"]["graphs"][0]) == {"graph", *rows}


def test_weights_of_an_unfinished_training_are_said_to_be(found: dict[str, Any]) -> None:
    rows = found["tables"]["weights"]
    assert [(row["weights"], row["of"]) for row in rows] == [
        ("small", 100_000),
        ("sequence", 100_000),
    ]
    assert all(row["steps"] < row["of"] for row in rows)
    text = tables.methods(found)
    assert f"`small` is after {rows[0]['steps']:,} of 100,000 steps of training." in text
    kept = found["tables"] | {"weights": [row | {"kept": row["steps"] - 1} for row in rows]}
    assert f"those after {rows[0]['steps'] - 1:,}, the best" in tables.methods(
        found | {"tables": kept}
    )
    ended = found["tables"] | {"weights": [row | {"steps": row["of"]} for row in rows]}
    assert "steps of training" not in tables.methods(found | {"tables": ended})


def test_weights_in_the_papers_settings_stand_without_tuned_ones(found: dict[str, Any]) -> None:
    named = json.loads(json.dumps(found).replace("gas, sequence", "gas, tuned"))
    kept = tables.in_paper_settings(named)
    labels = {row["method"] for row in kept["tables"]["methods"]}
    assert labels == {row["method"] for row in named["tables"]["methods"]} - {"gas, tuned"}
    assert "gas, tuned, %" in named["tables"]["evaluations"][0]
    assert ", tuned" not in tables.methods(kept) + tables.evaluations(kept)


def test_weights_in_the_papers_settings_are_of_the_papers_set(found: dict[str, Any]) -> None:
    for name in ("real_time", "real_time_paper"):
        named = found | {"options": found["options"] | {"name": name}}
        assert "| the paper's `regal` | 87.4 | -24.0 | 26.0 |" in tables.improvements(named)
        assert "| `cp_sat`, not run | – | 15.85 |" in tables.methods(named)


def test_graphs_of_folders_in_the_folder_are_named_with_theirs(
    graphs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "RESULTS", tmp_path / "results")
    shutil.copytree(graphs / "test", tmp_path / "set" / "small")
    few = ("--evaluations", "30", "--limits", "--graphs", "2", "--workers", "1")
    evaluation.main([str(tmp_path / "set"), "--name", "x", *few])
    made = read_record(tmp_path / "results" / "regal_x.json")
    names = [row["graph"] for row in made["tables"]["graphs"]]
    assert names == [f"small/{model}.json" for model in sorted(MODELS)[:2]]


def test_cp_sat_is_among_the_methods_where_it_is_given_seconds(
    graphs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ortools")
    monkeypatch.setattr(evaluation, "RESULTS", tmp_path)
    few = ("--evaluations", "30", "--limits", "--graphs", "1", "--workers", "1")
    named = ("--name", "synthetic_time", "--exact", "0.3")
    evaluation.main([str(graphs / "test"), *named, *few])
    rows = read_record(tmp_path / "regal_synthetic_time.json")["tables"]["methods"]
    assert [row["paper_gap_%"] for row in rows if row["method"] == "cp_sat"] == [0.0]


def problem(path: Path) -> Problem:
    return Problem(read(path), Cluster.identical(compared.DEVICES), "time", RULES["regal"])


def test_means_of_cp_sat_are_over_the_graphs_that_it_takes(
    graphs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ortools")
    sizes = sorted(map(size_of_model, map(problem, (graphs / "test").iterdir())))
    monkeypatch.setattr(cp_sat, "LARGEST", sizes[1])
    monkeypatch.setattr(evaluation, "RESULTS", tmp_path)
    few = ("--evaluations", "30", "--limits", "--workers", "1")
    evaluation.main([str(graphs / "test"), "--name", "x", "--exact", "0.2", *few])
    made = read_record(tmp_path / "regal_x.json")
    of_graphs = [row["cp_sat"] for row in made["tables"]["graphs"]]
    improved = [
        100 * (1 - row["cp_sat"] / row["brkga"])
        for row in made["tables"]["graphs"]
        if row["cp_sat"] is not None
    ]
    assert len(improved) == 2 < len(of_graphs)
    [row] = [row for row in made["tables"]["methods"] if row["method"] == "cp_sat"]
    assert row["improvement_%"] == pytest.approx(sum(improved) / 2)
    assert "| `cp_sat`, 2 of the graphs |" in tables.methods(made)


def test_means_are_of_the_values_by_graph(found: dict[str, Any]) -> None:
    graphs = found["tables"]["graphs"]
    assert [row["graph"] for row in graphs] == sorted(f"{model}.json" for model in MODELS)
    for row in found["tables"]["methods"]:
        improved = [100 * (1 - graph[row["method"]] / graph["brkga"]) for graph in graphs]
        assert row["improvement_%"] == pytest.approx(sum(improved) / len(graphs))
        same = "brkga, eager" if "eager" in row["method"] else "brkga"
        over_same = [100 * (1 - graph[row["method"]] / graph[same]) for graph in graphs]
        assert row["over_same_decoder_%"] == pytest.approx(sum(over_same) / len(graphs))
        assert (row["least_%"], row["most_%"]) == pytest.approx((min(over_same), max(over_same)))
        assert row["no_worse_%"] == 100 * sum(each >= -1e-7 for each in over_same) / len(graphs)
        assert row["gap_to_best_known_%"] >= 0


def test_no_method_improves_by_more_than_the_bound_allows(found: dict[str, Any]) -> None:
    [bound] = found["tables"]["bound"]
    most = max(row["improvement_%"] for row in found["tables"]["methods"])
    assert most <= bound["improvement_%"] < 100


def test_the_common_budget_is_the_reference_of_others(found: dict[str, Any]) -> None:
    short, common = found["tables"]["evaluations"]
    assert (short["evaluations"], common["evaluations"]) == (30, EVALUATIONS)
    assert short["brkga, %"] <= common["brkga, %"] == 0
    assert "idrs, small, %" not in common
    assert "regal, small, %" in common


def test_a_set_for_memory_is_not_planned_for_time(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        evaluation.main(["folder", "--name", "real_memory"])
    assert "real_memory: is not a set for --objective time" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["w.safetensors", "=w.safetensors", "tuned="])
def test_weights_have_a_name_and_a_file(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        evaluation.main(["folder", "--name", "x", "--weights", given])
    assert f"{given!r}: give NAME=FILE" in capsys.readouterr().err


def test_an_interval_narrows_with_the_root_of_the_number() -> None:
    few = evaluation.interval(np.array([1.0, 3.0] * 8))
    many = evaluation.interval(np.array([1.0, 3.0] * 800))
    assert few / many == pytest.approx(10, rel=0.05)
    assert evaluation.interval(np.array([1.0])) == 0


def test_choices_of_equal_frequency_have_the_greatest_entropy() -> None:
    assert actions.entropy(np.arange(160) % 16) == pytest.approx(np.log(16))
    assert actions.entropy(np.zeros(160, np.int64)) == 0


def test_the_most_frequent_choice_is_given_by_its_levels() -> None:
    proposed = SETTINGS["tuned", "time"].proposed
    chosen = actions.kinds(np.array([[15, 0, 3, 2], [0, 0, 3, 2], [7, 1, 0, 1]]), proposed)
    shape = actions.shapes(proposed)["transfers"]
    found = actions.usual(chosen["transfers"], *shape)
    assert found == {"usual": "4 3", "levels": 16, "usual_%": pytest.approx(200 / 3)}


def test_a_choice_prefers_the_device_of_the_greater_mean() -> None:
    proposed = SETTINGS["paper_synthetic", "time"].proposed
    chosen = np.array([[1, 0, 0, 1, 15, 0], [0, 0, 1, 1, 0, 0], [1, 0, 1, 0, 8, 0]])
    assert actions.classes(chosen, proposed).tolist() == [[0, 1], [1, 0], [2, 1]]
    assert len(set(actions.kinds(chosen, proposed)["placement"].tolist())) == 3


def test_a_policy_without_placement_prefers_no_device() -> None:
    proposed = SETTINGS["tuned", "time"].proposed
    chosen = np.array([[15, 0, 3, 0], [0, 0, 3, 1]])
    assert actions.classes(chosen, proposed).tolist() == [[2, 1], [2, 0]]
    assert actions.kinds(chosen, proposed)["transfers"].tolist() == [3, 19]


def test_choices_of_all_ops_are_counted_once(
    graphs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "RESULTS", tmp_path)
    given = ("--name", "small", "--weights", str(graphs / "small.safetensors"), "--graphs", "2")
    actions.main([str(graphs / "test"), *given])
    tables = read_record(tmp_path / "regal_actions_small.json")["tables"]
    assert sum(row["ops_%"] for row in tables["choices"]) == pytest.approx(100)
    assert tables["entropy, nats"][0]["graphs"] == 2
    assert 0 < tables["entropy, nats"][0]["mean"] <= np.log(16)


def test_seconds_are_of_plans_and_of_the_network(
    graphs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "RESULTS", tmp_path)
    sizes = ("--ops", "12", "--network-ops", "60", "--evaluations", "20", "--repeats", "2")
    speed.main(["--weights", str(graphs / "small.safetensors"), *sizes])
    tables = read_record(tmp_path / "regal_speed.json")["tables"]
    assert [row["method"] for row in tables["plans"]] == [
        "partition_dfs", "local_search", "brkga", "tuned_brkga", "regal",
    ]  # fmt: skip
    assert all(0 < row["least"] <= row["seconds"] for row in tables["plans"])
    assert tables["network, one thread"][0]["ops"] == 60
