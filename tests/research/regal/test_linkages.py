"""The comparison of linkages with constants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from benchmarks.lib.record import read_record
from research.regal import linkages
from situate.bench.families.regal import MODELS, synthetic
from situate.data import graph_json


def record(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> dict[str, Any]:
    """The record of a short comparison on two graphs a part."""
    for first, part in enumerate(("valid", "test")):
        (folder / part).mkdir()
        for i, model in enumerate(list(MODELS)[:2]):
            graph_json.write(synthetic(model, 12, 10 * first + i), folder / part / f"{i}.json")
    monkeypatch.setattr(linkages, "RESULTS", folder)
    few = ("--evaluations", "60", "--workers", "1")
    linkages.main([str(folder), "--name", "few", *few, *arguments])
    return dict(read_record(folder / "regal_linkages_few.json"))


# Every row is compared graph by graph with no linkage, the best constant and shuffled features.


def test_rows_are_compared_with_their_baselines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = record(tmp_path, monkeypatch)["tables"]
    rows = {row["linkage"]: row for row in tables["linkages"]}
    assert list(rows) == [
        linkages.NONE,
        linkages.BEST,
        linkages.LEARNT,
        linkages.EDGES,
        linkages.SHUFFLED,
        linkages.PLAIN,
        linkages.AUTO,
    ]
    assert rows[linkages.PLAIN]["over_plain_%"] == 0
    assert rows[linkages.NONE]["over_none_%"] == 0
    assert rows[linkages.BEST]["over_constant_%"] == 0
    assert rows[linkages.SHUFFLED]["over_shuffled_%"] == 0
    assert all(row["graphs"] == 2 for row in rows.values())


def test_the_constant_is_the_best_one_of_the_validation_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = record(tmp_path, monkeypatch)["tables"]
    others = (linkages.NONE, linkages.PLAIN, linkages.AUTO)
    constants = [row for row in tables["constants"] if row["together"] not in others]
    assert len(constants) == len(linkages.CONSTANTS)
    best = max(constants, key=lambda row: float(row["over_none_%"]))
    assert tables["data"][0]["best_constant"] == best["together"]


def test_a_value_is_the_mean_over_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = tmp_path / "a.json"
    graph_json.write(synthetic("er", 40, 0), graph)

    def value(seeds: int) -> float:
        task = linkages.Task(graph, "time", 2, 60, seeds, {linkages.NONE: None})
        return task.run()[linkages.NONE]

    one, two = value(1), value(2)
    monkeypatch.setattr(linkages, "range", lambda seeds: [1], raising=False)
    assert two == pytest.approx((one + value(2)) / 2)


def test_a_record_names_its_weights_and_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = record(tmp_path, monkeypatch)["tables"]
    assert tables["weights"][0]["weights"] == "time-linkage.safetensors"
    assert len(tables["weights"][0]["sha256"]) == len(tables["data"][0]["sha256"]) == 64
