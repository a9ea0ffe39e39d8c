"""The report is valid JSON below a megabyte, whatever the stages did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.gpu.report import MOST_BYTES, Report, commit, encode
from benchmarks.gpu.stages import Outcome


def test_the_file_is_whole_from_the_start_and_after_each_stage(tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.json"
    report = Report(path, {"format": "x"}, ["one", "two"])

    def verdicts() -> list[str]:
        return [entry["verdict"] for entry in json.loads(path.read_bytes())["stages"].values()]

    assert verdicts() == ["not reached", "not reached"]
    report.add("two", Outcome("hung", 1.0, "no end", {"a": 1}))
    assert verdicts() == ["not reached", "hung"]
    assert not json.loads(path.read_bytes())["finished"]
    report.finish()
    assert json.loads(path.read_bytes())["finished"]
    assert list(path.parent.iterdir()) == [path]


def entry(samples: int, others: int) -> dict[str, Any]:
    return {"figures": {"samples": ["x" * 99] * samples, "others": ["y" * 99] * others}}


def test_samples_are_left_out_first_then_the_figures_of_the_largest_stage() -> None:
    content = {"stages": {"small": entry(10, 10), "large": entry(9000, 500)}}
    stages = json.loads(encode(content, MOST_BYTES // 2))["stages"]
    assert stages["large"]["figures"].keys() == {"others"}
    assert stages["large"]["left_out"] == "samples"
    assert stages["small"] == entry(10, 10)
    stages = json.loads(encode(content, 20_000))["stages"]
    assert stages["large"]["figures"] == {}
    assert stages["small"]["figures"].keys() == {"others"}


def test_the_commit_is_that_beside_the_wheels_else_that_of_the_checkout(tmp_path: Path) -> None:
    file = tmp_path / "COMMIT"
    assert commit(file) == commit(tmp_path / "none")
    file.write_text("0123abc\n")
    assert commit(file) == "0123abc"
