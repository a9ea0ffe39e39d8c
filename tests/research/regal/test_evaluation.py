"""REGAL's comparison of methods on a set of graphs."""

from __future__ import annotations

import hashlib
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
from situate.solvers.evolutionary.regal.features import encoding
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
def content(graphs: Path) -> dict[str, Any]:
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


def cells(content: dict[str, Any]) -> dict[str, list[str]]:
    """The cells of the table of methods, by the first."""
    lines = tables.methods(content).splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    return {row[0]: row for row in rows}


# The paper's figures stand beside rows of the same decoder, settings and evaluations alone.


def test_a_serial_method_of_as_many_evaluations_is_beside_the_papers_figure(
    content: dict[str, Any],
) -> None:
    row_cells = cells(content | {"options": content["options"] | {"evaluations": 5000}})
    assert row_cells["`regal`, small"][2] == "4.81"
    assert row_cells["`gas`, sequence"][7] == "23.48"
    assert row_cells["`partition_dfs`"][7] == "93.66"
    for method in (
        "`auto`",
        "`brkga`, eager",
        "`brkga`, ten times as long",
        "`tuned_brkga`, eager",
    ):
        assert row_cells[method][2] == row_cells[method][7] == "–"
    assert row_cells["`regal`, best constant of paper settings"][2] == "–"
    assert "the paper's `regal`" not in row_cells
    assert row_cells["the paper's `cp_sat`"][2] == "19.50"


def test_with_other_evaluations_the_papers_figures_have_rows_of_their_own(
    content: dict[str, Any],
) -> None:
    row_cells = cells(content)
    assert row_cells["`regal`, small"][2] == "–"
    assert row_cells["the paper's `regal`"][2] == "4.81"


def test_weights_in_other_settings_are_not_beside_the_papers_figure(
    content: dict[str, Any],
) -> None:
    rows = [row | {"of": 1000} for row in content["tables"]["weights"]]
    tuned = content | {
        "options": content["options"] | {"evaluations": 5000},
        "tables": content["tables"] | {"weights": rows},
    }
    assert cells(tuned)["`regal`, small"][2] == "–"
    assert cells(tuned)["the paper's `regal`"][2] == "4.81"


# Constants and shuffled features are rows, and the difference to the best constant is paired.


def test_constants_and_shuffled_features_are_baselines(content: dict[str, Any]) -> None:
    labels = {row["method"] for row in content["tables"]["methods"]}
    assert {compared.TUNED, compared.PAPER, "regal, constant by hand"} < labels
    assert "regal, small, features shuffled" in labels
    assert set(content["tables"]["graphs"][0]) == {"graph", *labels}


def test_improvements_over_the_constant_are_paired(content: dict[str, Any]) -> None:
    graphs = content["tables"]["graphs"]
    for row in content["tables"]["methods"]:
        over = [100 * (1 - graph[row["method"]] / graph[row["best_constant"]]) for graph in graphs]
        assert row["over_constant_%"] == pytest.approx(sum(over) / len(graphs), abs=1e-6)
        half = evaluation.interval(np.array(over))
        assert row["over_constant_interval_%"] == pytest.approx(half, abs=1e-6)
    rows = {row["method"]: row for row in content["tables"]["methods"]}
    assert rows["regal, small"]["best_constant"] == compared.PAPER
    assert rows[compared.TUNED]["over_constant_%"] == 0


def test_a_constant_needs_no_weights(graphs: Path) -> None:
    of = problem(graphs / "test" / "er.json")
    for constant in compared.constants(200, "time"):
        assert constant.planned(of, 0).value > 0


def test_a_shuffled_network_reads_the_same_features_of_other_ops_and_no_edges(
    graphs: Path,
) -> None:
    encodings = []

    class Reader:
        settings = SETTINGS["tuned", "time"]

        def actions(self, encoded: Any, seed: int) -> Any:
            encodings.append(encoded)
            return seed

    of = problem(graphs / "test" / "er.json")
    encoded = encoding(of, np.zeros((of.n, 3), np.float32), True)
    assert compared.ShuffledNetwork(Reader()).actions(encoded, 5) == 5
    [read_of] = encodings
    assert not read_of.edges.any()
    assert encoded.edges.any()
    assert not np.array_equal(read_of.nodes, encoded.nodes)
    np.testing.assert_array_equal(np.sort(read_of.nodes, axis=0), np.sort(encoded.nodes, axis=0))


# A record names its weights and graphs by their hashes.


def test_a_record_has_the_hashes_of_weights_and_graphs(
    graphs: Path, content: dict[str, Any]
) -> None:
    file = graphs / "small.safetensors"
    row = content["tables"]["weights"][0]
    assert row["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert (row["file"], row["data"]) == (file.name, "abc")
    assert row["settings"]["proposed"]["scheduling"] == 16
    paths = sorted((graphs / "test").iterdir())
    hashes = "".join(read(path).hash for path in paths)
    [data] = content["tables"]["data"]
    assert data == {"graphs": 4, "sha256": hashlib.sha256(hashes.encode()).hexdigest()}


def test_weights_of_an_unfinished_training_are_said_to_be(content: dict[str, Any]) -> None:
    rows = content["tables"]["weights"]
    assert [(row["weights"], row["of"]) for row in rows] == [
        ("small", 100_000),
        ("sequence", 100_000),
    ]
    assert all(row["steps"] < row["of"] for row in rows)
    text = tables.methods(content)
    assert f"`small` is after {rows[0]['steps']:,} of 100,000 steps of training." in text
    early = content["tables"] | {"weights": [row | {"kept": row["steps"] - 1} for row in rows]}
    assert f"those after {rows[0]['steps'] - 1:,}, the best" in tables.methods(
        content | {"tables": early}
    )
    ended = content["tables"] | {"weights": [row | {"steps": row["of"]} for row in rows]}
    assert "steps of training" not in tables.methods(content | {"tables": ended})


def test_weights_in_the_papers_settings_stand_without_tuned_ones(content: dict[str, Any]) -> None:
    named = json.loads(json.dumps(content).replace("gas, sequence", "gas, tuned"))
    renamed = tables.in_paper_settings(named)
    labels = {row["method"] for row in renamed["tables"]["methods"]}
    tuned = {"gas, tuned", compared.TUNED, "regal, constant by hand"}
    assert labels == {row["method"] for row in named["tables"]["methods"]} - tuned
    assert compared.PAPER in labels
    assert "gas, tuned, %" in named["tables"]["evaluations"][0]
    assert ", tuned" not in tables.methods(renamed) + tables.evaluations(renamed)


def test_weights_in_the_papers_settings_are_of_the_papers_set(content: dict[str, Any]) -> None:
    for name, beside in (("real_time", False), ("real_time_paper", True)):
        named = content | {"options": content["options"] | {"name": name}}
        line = "| the paper's `regal` | 87.4 | -24.0 | 26.0 |"
        assert (line in tables.improvements(named)) == beside
        assert "| the paper's `cp_sat` | – | 15.85 |" in tables.methods(named)


def test_graphs_of_folders_in_the_folder_are_named_with_theirs(
    graphs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "RESULTS", tmp_path / "results")
    shutil.copytree(graphs / "test", tmp_path / "set" / "small")
    few = ("--evaluations", "30", "--limits", "--graphs", "2", "--workers", "1")
    evaluation.main([str(tmp_path / "set"), "--name", "x", *few])
    content = read_record(tmp_path / "results" / "regal_x.json")
    names = [row["graph"] for row in content["tables"]["graphs"]]
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
    assert [row["graphs"] for row in rows if row["method"] == "cp_sat"] == [1]


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
    content = read_record(tmp_path / "regal_x.json")
    of_graphs = [row["cp_sat"] for row in content["tables"]["graphs"]]
    improved = [
        100 * (1 - row["cp_sat"] / row["brkga"])
        for row in content["tables"]["graphs"]
        if row["cp_sat"] is not None
    ]
    assert len(improved) == 2 < len(of_graphs)
    [row] = [row for row in content["tables"]["methods"] if row["method"] == "cp_sat"]
    assert row["improvement_%"] == pytest.approx(sum(improved) / 2)
    assert "| `cp_sat`, 2 of the graphs |" in tables.methods(content)


def test_means_are_of_the_values_by_graph(content: dict[str, Any]) -> None:
    graphs = content["tables"]["graphs"]
    assert [row["graph"] for row in graphs] == sorted(f"{model}.json" for model in MODELS)
    for row in content["tables"]["methods"]:
        improved = [100 * (1 - graph[row["method"]] / graph["brkga"]) for graph in graphs]
        assert row["improvement_%"] == pytest.approx(sum(improved) / len(graphs))
        eager = ("brkga, eager", "tuned_brkga, eager", compared.TUNED, "regal, constant by hand")
        same = "brkga, eager" if row["method"] in eager else "brkga"
        over_same = [100 * (1 - graph[row["method"]] / graph[same]) for graph in graphs]
        assert row["over_same_decoder_%"] == pytest.approx(sum(over_same) / len(graphs))
        assert (row["least_%"], row["most_%"]) == pytest.approx((min(over_same), max(over_same)))
        assert row["no_worse_%"] == 100 * sum(value >= -1e-7 for value in over_same) / len(graphs)
        assert row["gap_to_best_known_%"] >= 0


def test_no_method_improves_by_more_than_the_bound_allows(content: dict[str, Any]) -> None:
    [bound] = content["tables"]["bound"]
    most = max(row["improvement_%"] for row in content["tables"]["methods"])
    assert most <= bound["improvement_%"] < 100


def test_the_common_budget_is_the_reference_of_others(content: dict[str, Any]) -> None:
    short, common = content["tables"]["evaluations"]
    assert (short["evaluations"], common["evaluations"]) == (30, EVALUATIONS)
    assert short["brkga, %"] <= common["brkga, %"] == 0
    assert "idrs, small, %" not in common
    assert "regal, small, %" in common


def test_a_set_for_memory_is_not_planned_for_time(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        evaluation.main(["folder", "--name", "real_memory"])
    assert "real_memory: is not a set for --objective time" in capsys.readouterr().err


@pytest.mark.parametrize("weights", ["w.safetensors", "=w.safetensors", "tuned="])
def test_weights_have_a_name_and_a_file(weights: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        evaluation.main(["folder", "--name", "x", "--weights", weights])
    assert f"{weights!r}: give NAME=FILE" in capsys.readouterr().err


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
    result = actions.usual(chosen["transfers"], *shape)
    assert result == {"usual": "4 3", "levels": 16, "usual_%": pytest.approx(200 / 3)}


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
    arguments = ("--name", "small", "--weights", str(graphs / "small.safetensors"), "--graphs", "2")
    actions.main([str(graphs / "test"), *arguments])
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
