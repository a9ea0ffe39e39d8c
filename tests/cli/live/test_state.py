"""The state of searches for a live page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from situate.cli.live import state as live
from situate.cli.live.progress_file import begin_progress, progress_file
from situate.cli.live.state import is_live, live_state
from situate.evaluators.measurements import Measurements, Origin
from situate.results.result import Progress
from situate.study import Study
from situate.study.file import StudyFile
from tests.report.handmade import HOSTILE, chain
from tests.report.outcome import outcome
from tests.study.studies import HEADER


def _write(path: Path, method: str = "heft", end: bool = False) -> None:
    with progress_file(str(path), chain(4), method) as file:
        file.report(Progress(0.5, 3, float("inf"), False, 1.0))
        file.report(Progress(1.0, 9, 8.0, True, 2.0))
        file.report(Progress(2.0, 12, 5.0, True, 2.0))
        if end:
            file.end(outcome(chain(4), [0, 0, 1, 1]))


def test_a_running_search_has_its_best_value_bound_and_gap(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    begin_progress(str(path))
    _write(path)
    (section,) = live_state([str(path)])["sections"]
    assert section["title"] == "heft: chain on pair"
    assert section["running"]
    figures = dict(section["figures"])
    assert (figures["best makespan"], figures["lower bound"]) == ("5.00 s", "2.00 s")
    assert (figures["gap"], figures["search"]) == ("150.0 %", "12 evaluations in 2.0 s")
    best, bound = section["charts"][0]["lines"]
    assert best["points"] == [[1.0, 8.0], [2.0, 5.0]]
    assert bound["points"] == [[1.0, 2.0], [2.0, 2.0]]


def test_an_ended_search_names_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    begin_progress(str(path))
    _write(path, end=True)
    (section,) = live_state([str(path)])["sections"]
    assert not section["running"]
    assert dict(section["figures"])["lower bound"] == "2.00 s, by load"


def test_the_latest_search_of_a_command_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    begin_progress(str(path))
    _write(path, "single", end=True)
    _write(path, "heft")
    titles = [section["title"] for section in live_state([str(path)])["sections"]]
    assert titles == ["heft: chain on pair", "single: chain on pair"]


def test_a_search_without_a_plan_says_so(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    begin_progress(str(path))
    with progress_file(str(path), chain(4), "heft"):
        pass
    (section,) = live_state([str(path)])["sections"]
    assert section["figures"] == [["state", "no plan yet"]]


def test_a_damaged_file_shows_its_error_and_the_others_stay(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    begin_progress(str(good))
    _write(good)
    bad.write_bytes(good.read_bytes().replace(b'"seconds"', b"seconds"))
    sections = live_state([str(bad), str(good)])["sections"]
    assert "line 3" in sections[0]["note"]
    assert sections[1]["title"] == "heft: chain on pair"


def test_a_study_has_curves_and_outcomes(situate, model, pair) -> None:
    budget = ("--method", "post", "--samples", "12", "--study", "s.study")
    situate("plan", model, "--cluster", pair, *budget)
    assert is_live("s.study")
    (section,) = live_state(["s.study"])["sections"]
    figures = dict(section["figures"])
    assert figures["samples"].endswith("of 12")
    assert figures["outcome ok"] == figures["samples"].split()[0]
    assert section["charts"][0]["lines"][0]["points"]


def test_the_samples_of_each_worker_are_counted(situate, model, pair) -> None:
    situate("plan", model, "--cluster", pair, "--method", "post", "--samples", "9", "--study", "s")
    study = Study.read("s")
    origins = (Origin("here", 1.0), None, Origin("there", 2.0), Origin("here", 1.0))
    seconds = np.array([1.0, 2.0, 3.0, 4.0])
    measurements = Measurements(seconds, np.zeros(4, np.uint8), origins)
    section = live._study_section(replace(study, measurements=measurements))
    assert section["workers"] == [["here", "2 samples"], ["there", "1 sample"]]


def test_finalists_come_with_their_devices_the_fastest_first(tmp_path: Path) -> None:
    header = HEADER | {"unit": "s"}
    placements = np.array([[0] * 6, [0, 0, 0, 1, 1, 2]], np.int32)
    with StudyFile(tmp_path / "a", header) as file:
        for first, seconds in ((0, [3.0, 2.0]), (2, [np.inf, 1.0])):
            measurements = Measurements(np.array(seconds), np.zeros(2, np.uint8))
            file.record(first + np.arange(2), placements, measurements, first, "finals")
    assert live._finalists(Study.read(tmp_path / "a")) == [
        ["ops: 3 on device 0, 2 on device 1, 1 on device 2", "1.50 s, 2 measurements"],
        ["ops: 6 on device 0", "failed, 2 measurements"],
    ]


def test_curves_are_thinned_with_their_ends(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(live, "MAX_POINTS", 10)
    path = tmp_path / "run.jsonl"
    begin_progress(str(path))
    with progress_file(str(path), chain(4), "heft") as file:
        for i in range(100):
            file.report(Progress(float(i), i, 200.0 - i, True, 1.0))
    points = live_state([str(path)])["sections"][0]["charts"][0]["lines"][0]["points"]
    assert (len(points), points[0], points[-1]) == (10, [0.0, 200.0], [99.0, 101.0])


def test_names_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    begin_progress(str(path))
    for name in HOSTILE:
        with progress_file(str(path), chain(4), name):
            pass
    titles = [section["title"] for section in live_state([str(path)])["sections"]]
    assert not any("\u202e" in title or "\n" in title for title in titles)


def test_other_files_are_not_live(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}")
    assert not is_live(str(tmp_path / "plan.json"))
    assert not is_live(str(tmp_path / "none"))
