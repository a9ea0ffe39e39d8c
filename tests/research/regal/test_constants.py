"""The search for the best constant, and the constants that come with situate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from benchmarks.lib.record import read_record
from research import RESULTS
from research.regal import compared, constants, tables
from situate.bench.families.regal import MODELS, synthetic
from situate.data import graph_json
from situate.solvers.evolutionary.regal.settings import CONSTANTS


def record(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> dict[str, Any]:
    """The record of a short search on four graphs."""
    (folder / "set").mkdir(exist_ok=True)
    for i, model in enumerate(MODELS):
        graph_json.write(synthetic(model, 12, i), folder / "set" / f"{model}.json")
    monkeypatch.setattr(constants, "RESULTS", folder)
    monkeypatch.setattr(constants, "COARSE", (2, 16))
    few = ("--evaluations", "20", "--graphs", "4")
    constants.main([str(folder / "set"), *few, *arguments])
    [path] = folder.glob("regal_constants_*.json")
    return dict(read_record(path))


# Rungs halve the constants, and the last one ranks them.


def test_rungs_have_fewer_constants_and_more_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = record(tmp_path, monkeypatch)["tables"]
    rungs = result["rungs"]
    assert rungs[0]["constants"] == 16
    assert rungs[-1]["constants"] <= constants.FINALISTS + 1
    assert [row["graphs"] for row in rungs] == [1, 1, 1, 4]
    assert [row["evaluations"] for row in rungs] == [4, 4, 4, 20]
    rows = result["constants"]
    assert rows[0]["behind_the_best_%"] == 0
    improvements = [row["improvement_%"] for row in rows]
    assert improvements == sorted(improvements, reverse=True)
    for row in rows:
        assert row["improvement_%"] == pytest.approx(row[f"{tmp_path.name}/set, %"])


def test_the_seed_decides_and_the_constant_by_hand_is_in_the_last_rung(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, again = (record(tmp_path, monkeypatch) for _ in range(2))
    assert first["tables"] == again["tables"]
    by_hand = [row["constant"] for row in first["tables"]["constants"] if row["by_hand"]]
    assert by_hand == [str(replace(CONSTANTS["tuned", "time"], levels=compared.BY_HAND))]
    assert f"| {by_hand[0]}, by hand |" in tables.constants(first)


def test_all_constants_of_few_choices_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = record(tmp_path, monkeypatch, "--settings", "paper", "--objective", "memory")
    assert result["tables"]["rungs"][0]["constants"] == 4


def test_neighbours_differ_by_one_level_of_one_choice() -> None:
    assert set(constants.neighbours((1, 5), 16)) == {(2, 5), (1, 4), (1, 6)}
    assert set(constants.neighbours((16,), 16)) == {(15,)}


# The constants of situate are the best of their records; those set by hand have none.


def test_the_constant_of_each_settings_is_the_best_of_its_record() -> None:
    paths = {which: RESULTS / f"regal_constants_{'_'.join(which)}.json" for which in CONSTANTS}
    result = {which: path for which, path in paths.items() if path.is_file()}
    assert {("tuned", "time"), ("paper", "time")} <= set(result)
    for which, path in result.items():
        best = read_record(path)["tables"]["constants"][0]
        assert best["constant"] == str(CONSTANTS[which])
