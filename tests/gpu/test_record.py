"""Tables and lines of a cluster file from a report: that of a rehearsal on two CPU cores, put
together from two runs and shortened, in which a stage hung."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu import record
from benchmarks.gpu.report import FORMAT
from situate.data.costs import Efficiency
from situate.data.op_classes import EFFICIENCY
from situate.errors import SituateError

REHEARSAL = Path(__file__).with_name("rehearsal.json")


@pytest.fixture
def report() -> dict[str, Any]:
    return record.read(REHEARSAL, rehearsal=True)


def test_a_record_has_the_origin_of_the_report(report: dict[str, Any], tmp_path: Path) -> None:
    record.main([str(REHEARSAL), "--rehearsal", "--folder", str(tmp_path)])
    content = json.loads((tmp_path / "gpu.json").read_bytes())
    assert content["benchmark"] == "gpu"
    assert content["commit"] == report["commit"]
    assert content["date"] == report["date"]
    assert content["versions"]["torch"] == "2.13.0+cpu"
    assert content["tables"].keys() == record.tables(report).keys()
    assert [target["what"] for target in content["targets"]] != []


def test_rows_of_a_table_have_the_same_columns(report: dict[str, Any]) -> None:
    for rows in record.tables(report).values():
        assert len({tuple(row) for row in rows}) == 1


def test_a_stage_that_hung_has_its_figures_so_far(report: dict[str, Any]) -> None:
    tables = record.tables(report)
    (hung,) = (row for row in tables["stages"] if row["verdict"] == "hung")
    assert hung["error"].startswith("no end after 45 s")
    (row,) = (r for r in tables["networks"] if f"networks.{r['network']}.{r['dtype']}" in
              hung["stage"])  # fmt: skip
    assert row["ops"] > 0
    assert row["placed_seconds"] is row["error"] is None


def test_the_lines_are_those_of_a_cluster_file(report: dict[str, Any]) -> None:
    content = tomllib.loads(f"[[devices]]\n{record.cluster_lines(report)}")
    (device,) = content["devices"]
    assert device["launch"] > 0
    assert device["efficiency"].keys() <= EFFICIENCY.keys()
    assert all(0 < fraction <= 1 for fraction in device["efficiency"].values())
    assert [(link["from"], link["to"]) for link in content["links"]] == [
        ("cpu", "gpu*"), ("gpu*", "cpu"),
    ]  # fmt: skip


def test_a_report_without_figures_has_no_lines_but_its_origin(report: dict[str, Any]) -> None:
    for entry in report["stages"].values():
        entry["figures"] = {}
    assert tomllib.loads(record.cluster_lines(report)) == {}
    assert record.tables(report)["networks"] == []
    assert record.targets([]) == []


def test_fits_are_of_the_samples_of_all_networks() -> None:
    """Products of 1e9 to 1e12 FLOPs at half of the peak, the larger ones in another network."""

    def stage(sizes: list[float]) -> dict[str, Any]:
        samples = [["aten.mm", "float32", int(f), 1, f / 0.5e12 + 1e-5, 1] for f in sizes]
        peaks = {"flops": {"float32": 1e12}, "bandwidth": 1e12}
        return {"figures": {"samples": samples, "peaks": peaks, "launch": 1e-5}}

    stages = {"networks.a": stage([1e9, 1e10]), "networks.b": stage([1e11, 1e12])}
    fit = record.fits({"stages": stages})["matmul"]
    assert fit.arithmetic == pytest.approx(0.5, rel=1e-3)
    assert fit.ops == 4


@pytest.mark.parametrize(("name", "fraction"), [("matmul", 0.4), ("reduction", 0.6)])
def test_a_class_states_the_fraction_of_what_limits_it(name: str, fraction: float) -> None:
    assert record.fraction(name, Efficiency(0.4, 0.6, 1.0, 9, 1.1)) == fraction
    assert record.fraction(name, Efficiency(4.0, 6.0, 1.0, 9, 1.1)) == 1.0


def options(**changes: Any) -> str:
    """A report that has nothing but its options."""
    return json.dumps({"format": FORMAT, "options": {"tiny": False, "device": "cuda:0"} | changes})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "Expecting"),
        ("[]", "not a report of 'python -m benchmarks.gpu'"),
        ('{"format": "x"}', "not a report of 'python -m benchmarks.gpu'"),
        (options(device="cpu"), "a rehearsal"),
        (options(tiny=True), "a rehearsal"),
    ],
)
def test_a_file_that_is_no_record_is_refused(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(content)
    with pytest.raises(SituateError, match=words):
        record.read(path)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"^error: .*none\.json"):
        record.main([str(tmp_path / "none.json")])
