"""REGAL's other experiments, and the page that shows all of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

pytest.importorskip("matplotlib")
pytest.importorskip("safetensors")
pytest.importorskip("torch")

from benchmarks.lib.record import read_record
from research.regal import (
    ablations,
    auto,
    evaluation,
    figures,
    larger,
    page,
    tables,
    topologies,
)
from situate.bench.families.regal import MODELS, synthetic
from situate.data import graph_json
from situate.data.graph import Graph, Op, Tensor
from situate.readers import read
from situate.solvers import solve
from situate.solvers.evolutionary.regal import weights
from situate.solvers.evolutionary.regal.settings import SETTINGS
from tests.solvers.evolutionary.regal.test_weights import about, policy
from tests.solvers.evolutionary.regal.training.test_trainer import SMALL

OBJECTIVES = ("time", "memory")


def of_links(graph: Graph) -> Graph:
    """The graph in seconds; how long its transfers take the cluster's links decide."""
    tensors = tuple(structs.replace(tensor, seconds=None) for tensor in graph.tensors)
    return replace(graph, tensors=tensors, unit="s")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders `train`, `valid` and `test` of graphs, and weights that learnt nothing."""
    root = tmp_path_factory.mktemp("regal")
    for i, part in enumerate(("train", "valid", "test")):
        (root / part).mkdir()
        for model in list(MODELS)[:2]:
            graph_json.write(of_links(synthetic(model, 12, i)), root / part / f"{model}.json")
    for objective in OBJECTIVES:
        of = about(SETTINGS["paper", objective], objective=objective, devices=2)  # type: ignore[index]
        weights.write(root / f"{objective}.safetensors", policy(of), of)
    return root


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in (ablations, auto, topologies):
        monkeypatch.setattr(module, "RESULTS", tmp_path)
    return tmp_path


def content(results: Path, name: str) -> dict[str, Any]:
    return dict(read_record(results / f"regal_{name}.json"))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_auto_is_compared_with_and_without_a_start(
    objective: str, folder: Path, results: Path
) -> None:
    arguments = ("--name", "x", "--weights", str(folder / f"{objective}.safetensors"))
    budget = ("--seconds", "0.05", "--evaluations", "200")
    auto.main([str(folder / "test"), *arguments, "--objective", objective, *budget])
    result = content(results, "auto_x")["tables"]
    budgets = ("0.05 s", "200 evaluations")
    assert [(row["budget"], row["first"]) for row in result["budgets"]] == [
        (of, start) for of in budgets for start in auto.STARTS
    ]
    columns = {f"{of}{first}" for of in budgets for first in ("", ", regal first")}
    assert columns < set(result["graphs"][0])
    assert "| 200 evaluations | `regal` | 2 |" in tables.starts({"tables": result})


def test_graphs_of_which_no_plan_fits_do_not_count(
    folder: Path, results: Path, tmp_path: Path
) -> None:
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in ("producer", "consumer"))
    one_tensor = Graph("one_tensor", ops, (Tensor("t", 0, 1000, (1,)),))
    graph_json.write(one_tensor, tmp_path / "one_tensor.json")
    arguments = [str(tmp_path), "--name", "x", "--weights", str(folder / "time.safetensors")]
    limited = [*arguments, "--memory", "0.95", "--seconds", "--evaluations", "200"]
    with pytest.raises(SystemExit, match="no plan fits, of any graph"):
        auto.main(limited)
    graph_json.write(read(folder / "test" / "er.json"), tmp_path / "er.json")
    auto.main(limited)
    result = content(results, "auto_x")["tables"]
    assert [row["graphs"] for row in result["budgets"]] == [1, 1]
    fits = {row["graph"]: row["fits"] for row in result["graphs"]}
    assert fits == {"er.json": True, "one_tensor.json": False}


def test_auto_goes_on_from_the_very_plan_that_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph_json.write(of_links(synthetic("er", 60, 0)), tmp_path / "er.json")
    options = auto._options([str(tmp_path), "--name", "x", "--weights", "w"])
    of = auto.problem(tmp_path / "er.json", options)
    monkeypatch.setattr(auto, "run_auto", lambda search: None)
    start = auto.started(of, auto.Limits(evaluations=1200), options, "tuned_brkga")
    first = solve(of, "tuned_brkga", evaluations=300, threads=1)
    assert start.value == first.value
    assert first.transfers is not None


def test_a_start_takes_its_share_of_the_evaluations(folder: Path) -> None:
    options = auto._options([str(folder / "test"), "--name", "x", "--weights", "w"])
    options.weights = folder / "time.safetensors"
    of = auto.problem(folder / "test" / "er.json", options)
    for start in auto.STARTS:
        result = auto.started(of, auto.Limits(evaluations=400), options, start)
        assert result.evaluations <= 400 or result.gap == 0
    assert auto.Limits(evaluations=400).part(0.25) == auto.Limits(evaluations=100)
    assert auto.Limits(seconds=2.0).part(0.25) == auto.Limits(seconds=0.5)


def test_links_and_memory_are_as_asked_for(folder: Path) -> None:
    arguments = [str(folder / "test"), "--name", "x", "--weights", "w"]
    free = auto.problem(folder / "test" / "er.json", auto._options(arguments))
    options = auto._options([*arguments, "--bandwidth", "25", "--memory", "0.5"])
    of = auto.problem(folder / "test" / "er.json", options)
    assert free.transfer_time(0, 0, 1) == 0
    assert of.transfer_time(0, 0, 1) == pytest.approx(of.size[0] / 25)
    assert of.capacity.max() <= 0.5 * free.size.sum() < free.capacity.min()


def test_devices_are_as_slow_as_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(folder / "test"), "--name", "x", "--weights", "w"]
    of = auto.problem(
        folder / "test" / "er.json", auto._options([*arguments, "--slowness", "1", "3"])
    )
    np.testing.assert_allclose(of.seconds[:, 1], 3 * of.seconds[:, 0])
    with pytest.raises(SystemExit):
        auto._options([*arguments, "--slowness", "1"])
    assert "give one for each of the 2 devices" in capsys.readouterr().err


def test_a_start_that_is_better_counts_as_improvement() -> None:
    result = auto.compared(np.array([2.0, 4.0, 1.0]), np.array([1.0, 5.0, 1.0]))
    assert result["improvement_%"] == pytest.approx((50 - 25 + 0) / 3)
    assert result["better_%"] == result["worse_%"] == pytest.approx(100 / 3)


def test_rewards_are_of_each_topology_and_its_copies(folder: Path, results: Path) -> None:
    arguments = ("--name", "x", "--weights", str(folder / "time.safetensors"), "--copies", "2")
    topologies.main([str(folder / "test"), *arguments, "--evaluations", "60", "--workers", "1"])
    result = content(results, "topologies_x")
    rows = result["tables"]["topologies"]
    assert [row["rewards"] for row in rows] == [3, 3]
    assert rows[0]["median"] >= rows[1]["median"]
    for row in rows:
        assert row["least"] <= row["lower_quartile"] <= row["median"] <= row["most"] < 0
    assert any(row["least"] < row["most"] for row in rows)
    assert "| all | 6 |" in tables.topologies(result)


def test_trainings_differ_in_rounds_and_go_on(
    folder: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ablations, "settings_of", lambda *_: SMALL)
    monkeypatch.setattr(ablations, "ROUNDS", (0, 2))
    out = results / "out"
    arguments = ("--name", "x", "--out", str(out), "--steps", "4", "--seeds", "2", "--workers", "1")
    command = ["rounds", str(folder), *arguments, "--evaluations", "120"]
    ablations.main(command)
    result = content(results, "rounds_x")["tables"]
    assert [(row["variant"], row["steps"]) for row in result["variants"]] == [("0", 4), ("2", 4)]
    assert [(of["variant"], of["seed"]) for of in result["curves"]] == [
        ("0", 0), ("0", 1), ("2", 0), ("2", 1),
    ]  # fmt: skip
    assert [len(of["curve"]) for of in result["curves"]] == [4] * 4
    files = {path: path.stat().st_mtime_ns for path in out.rglob("checkpoint.npz")}
    assert len(files) == 4
    ablations.main(command)
    assert content(results, "rounds_x")["tables"] == result
    assert files == {path: path.stat().st_mtime_ns for path in out.rglob("checkpoint.npz")}


def test_a_variant_of_the_papers_has_its_figures() -> None:
    options = ablations._options(
        ["proposals", "data", "--name", "x", "--out", "out", "--objective", "memory"]
    )
    values = [np.array([1.0, 2.0]), np.array([3.0, 2.0])]
    rows = [
        ablations._row(name, [about(), about()], values, options)
        for name in ("scheduling", "transfers")
    ]
    assert rows[0]["test_%"] == 2
    assert rows[0]["best_reward"] == -0.95
    content = {"options": {"which": options.which}, "tables": {"variants": rows}}
    lines = tables.variants(content).splitlines()
    assert lines[0].startswith("| proposed | steps |")
    assert lines[2] == "| scheduling | 7 | 2 | -0.9500 | 2.0 | 4.40 | 3.65 |"
    assert lines[3] == "| transfers | 7 | 2 | -0.9500 | 2.0 | – | – |"


def test_seconds_of_serial_methods_are_beside_the_papers() -> None:
    plans = [{"method": name, "threads": 2, "seconds": 0.06} for name in ("brkga", "regal")]
    result = tables.seconds({"options": {"ops": 150}, "tables": {"plans": plans}})
    lines = result.splitlines()
    assert lines[2:4] == ["| `brkga` | 2 | 0.060 | 0.89 |", "| `regal` | 2 | 0.060 | – |"]
    assert "| the paper's `partition_dfs` | – | – | 144 |" in lines
    assert "| the paper's `regal` | – | – | 1.04 |" in lines
    assert len(lines) == 3 + len(tables.SECONDS)


def test_improvements_by_evaluations_are_of_so_many_graphs() -> None:
    row = {"evaluations": 1000, "brkga, %": -2.0, "brkga, ±": 0.5}
    of = {"evaluations": [row], "graphs": [{}] * 3}
    for limit, graphs in ((2, 2), (9, 3)):
        text = tables.evaluations({"options": {"limit_graphs": limit}, "tables": of})
        assert text.splitlines()[0] == f"| evaluations, {graphs} graphs | `brkga` |"


def test_trainings_differ_in_what_is_proposed() -> None:
    arguments = ["proposals", "data", "--name", "x", "--out", "out", "--objective", "memory"]
    variants = ablations._variants(ablations._options(arguments))
    assert variants["placement"].proposed.choices(2) == [2, 2, 2, 2]
    assert variants["scheduling"].proposed.choices(2) == [2, 2]
    assert variants["placement and scheduling"].proposed.choices(2) == [2] * 6
    assert variants["scheduling and transfers"].proposed.choices(2) == [2, 2, 16, 16]
    assert {variant.shape for variant in variants.values()} == {SETTINGS["tuned", "memory"].shape}


def test_larger_graphs_are_timed_copied_and_none_that_trained(tmp_path: Path) -> None:
    output, arguments = tmp_path / "made", ("--networks", "cifar_cnn", "--copies", "1")
    larger.main([str(output), *arguments])
    paths = sorted(output.iterdir())
    assert [path.name for path in paths] == ["cifar_cnn.0.json.gz", "cifar_cnn.1.json.gz"]
    graph, copy = map(read, paths)
    assert sum((op.seconds or {})["*"] for op in graph.ops) > 0
    assert list(graph.edges()) == list(copy.edges())
    assert graph.hash != copy.hash
    larger.main([str(tmp_path / "none"), *arguments, "--trained", str(output)])
    assert list((tmp_path / "none").iterdir()) == []


def test_the_page_is_what_the_results_say() -> None:
    assert page.PAGE.read_text() == page.page(), "run python -m research.regal.page"


def test_what_is_not_measured_has_its_command(tmp_path: Path) -> None:
    text = page.page(tmp_path)
    parts = [part for section in page.SECTIONS.values() for part in section]
    assert text.count("Not measured yet: `python -m research.regal.") == len(parts)
    assert "regal.evaluation REAL/memory/test --name real_memory --objective memory" in text


def test_records_of_lost_weights_say_so(tmp_path: Path) -> None:
    shipped = "time-2-tuned-real.safetensors"
    of = {"plans": [{"method": "brkga", "threads": 1, "seconds": 0.1}]}
    for name, tables_of, files, lost in (
        ("hashed", {"weights": [{"sha256": "ab"}]}, "weights.safetensors", False),
        ("shipped", {"weights": [{"steps": 1}]}, {"tuned": shipped}, False),
        ("other", {"weights": [{"steps": 1}]}, {"tuned": "weights.safetensors"}, True),
        ("trained", {"curves": []}, None, True),
        ("listed", {"curves": [], "trainings": [{"sha256": "ab"}]}, None, False),
        ("none", {}, None, False),
    ):
        content = {
            "commit": "abc",
            "date": "2026-01-01",
            "options": {"ops": 1, "weights": files},
            "tables": of | tables_of,
        }
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(content))
        part = page.Part("", name, "", tables.seconds)
        assert (page.WEIGHTS_LOST in page._part(part, path)) == lost, name


def test_the_command_of_a_comparison_plans_for_the_objective_of_its_set() -> None:
    parts = [part for section in page.SECTIONS.values() for part in section]
    evaluations = {part.arguments for part in parts if part.arguments.startswith("evaluation ")}
    commands = [evaluation._options(line.split()[1:]) for line in evaluations]
    assert {"real_memory", "real_memory_paper"} < {of.name for of in commands}
    assert {of.name for of in commands if of.objective == "memory"} == {
        of.name for of in commands if "memory" in of.name
    }


def test_a_picture_is_drawn_of_each_record(
    folder: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"graph": "g", "rewards": 3, "least": -1.2, "lower_quartile": -1.1, "median": -1.0}
    boxes = {"topologies": [row | {"upper_quartile": -0.9, "most": -0.8}]}
    of = {"variant": "0", "best_reward": -0.9, "mean_best_reward": -0.95}
    entropies = {"graphs": [{"graph": "g", "scheduling": 0.5}]}
    curve = [{"training": "x", "steps": 500 * i, "improvement_%": i} for i in (1, 2)]
    compared = {
        "methods": [{"method": "regal, x", "same_decoder": "brkga"}],
        "graphs": [{"graph": "g", "regal, x": 1.0, "brkga": 2.0}],
        "evaluations": [{"evaluations": 10 * i, "brkga, %": i, "brkga, ±": 0.1} for i in (1, 2)],
    }
    records = {
        "topologies_x": boxes,
        "rounds_x": {"variants": [of]},
        "actions_x": entropies,
        "trainings": {"trainings": [], "curves": curve},
        "x": compared,
    }
    for name, record_tables in records.items():
        record = {"options": {"name": "x"}, "tables": record_tables}
        (results / f"regal_{name}.json").write_text(json.dumps(record))
    figures.main(["--results", str(results), "--images", str(results), "--all"])
    assert {path.name for path in results.glob("*.svg")} == {
        "regal_trainings.svg",
        *(
            f"regal_{figure}_x.svg"
            for figure in ("topologies", "rounds", "entropies", "improvements", "evaluations")
        ),
    }
