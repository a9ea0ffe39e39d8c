"""The comparison of ways to use a linkage inside `auto`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("safetensors")
pytest.importorskip("torch")

from benchmarks.lib import record as records
from benchmarks.lib.record import read_record
from research.regal import in_auto
from situate.bench.families.regal import MODELS, synthetic
from situate.data import graph_json
from tests.research.regal.test_experiments import of_links

FEW = ("--evaluations", "150", "--seconds", "60", "--least", "0", "--graphs", "1", "--longer", "2")


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> dict[str, Any]:
    """The record of a short comparison on one captured graph."""
    for part in ("time", "memory"):
        (folder / part / "test").mkdir(parents=True, exist_ok=True)
        graph = of_links(synthetic(next(iter(MODELS)), 30, 0))
        graph_json.write(graph, folder / part / "test" / "graph.json")
    monkeypatch.setattr(in_auto, "RESULTS", folder)
    families = ("--families", "blocking", "time", "--seeds", "1")
    in_auto.main([str(folder), *FEW, *families, *arguments])
    return dict(read_record(folder / "regal_in_auto_ways.json"))


def test_each_way_is_compared_with_auto_and_with_the_constant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = run(tmp_path, monkeypatch)["tables"]
    assert [row["family"] for row in tables["runs"]] == ["blocking", "time"]
    rows = {(row["family"], row["way"]): row for row in tables["ways"]}
    assert {way for _, way in rows} == {
        *(f"{way}, {linkage}" for way in in_auto.WAYS for linkage in in_auto.LINKAGES),
        in_auto.LONGER,
    }
    assert rows["all", "parts, constant"]["over_constant_%"] == 0
    assert rows["all", "start, learnt"]["problems"] == 2
    assert rows["all", in_auto.LONGER]["over_constant_%"] is None


def test_a_part_of_the_ways_can_be_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = run(tmp_path, monkeypatch, "--ways", "start", "--linkages", "learnt")["tables"]
    assert {row["way"] for row in tables["ways"]} == {"start, learnt", in_auto.LONGER}


def test_a_run_at_the_same_commit_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(records, "commit", lambda: "a")
    first = run(tmp_path, monkeypatch)["tables"]["runs"]
    capsys.readouterr()
    assert run(tmp_path, monkeypatch)["tables"]["runs"] == first
    assert "'family'" not in capsys.readouterr().out


# Means over seeds, then over problems; problems without room are left out.
def test_gains_are_means_over_seeds_of_each_problem() -> None:
    rows = [
        {"family": "time", "problem": name, "a": 100.0, "b": value}
        for name, value in (("x", 90.0), ("x", 80.0), ("y", 100.0), ("z", None))
    ]
    assert in_auto.gains(rows, "a", "b").tolist() == pytest.approx([15, 0])


def test_proved_problems_do_not_count() -> None:
    row = {"family": "time", "problem": "x", "proved": True, "without": 1.0, "longer": None}
    assert list(in_auto.summary([row])) == []
