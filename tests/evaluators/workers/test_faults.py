"""A study under faults equals the study of an undisturbed search."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.lib.killed_workers import Sleeping, killing
from situate.errors import SituateError
from situate.evaluators.workers.processes import ProcessWorkers
from situate.results.result import Result
from situate.study import Study
from situate.study.file import StudyFile
from tests.solvers.killed import PROBLEM, SAMPLES, outcome, search
from tests.study.studies import room_for

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def undisturbed() -> Result:
    """The search that no worker has a part in."""
    return search(None)


@pytest.fixture
def search_folder(tmp_path: Path) -> Path:
    """A folder with the numbers of the processes that measure."""
    folder = tmp_path / "begun"
    folder.mkdir()
    return folder


def _search(study: Path, search_folder: Path, workers: int, seconds: float = 0.002) -> Result:
    return search(
        study, evaluator=Sleeping(PROBLEM, 0.1, 3, search_folder, seconds), workers=workers
    )


def _is_that_of(result: Result, study: Path, undisturbed: Result) -> None:
    assert outcome(result) == outcome(undisturbed)
    stored = Study.read(study)
    assert np.array_equal(stored.measurements.seconds, undisturbed.samples)


# Each search runs in a child process, which the test disturbs.
def test_workers_that_are_killed_again_and_again(
    undisturbed: Result, tmp_path: Path, search_folder: Path
) -> None:
    with (
        killing(search_folder, every=0.2, most=3) as killed,
        pytest.warns(UserWarning, match=r"workers failed \d+ times?, and what they were"),
    ):
        study_bytes = _search(tmp_path / "study", search_folder, workers=2, seconds=0.01)
    assert killed
    _is_that_of(study_bytes, tmp_path / "study", undisturbed)


SEARCH = """
import sys
from pathlib import Path
from tests.evaluators.workers.test_faults import _search
_search(Path(sys.argv[1]), Path(sys.argv[2]), workers=3, seconds=0.02)
"""


def test_a_driver_that_is_killed_and_started_again_with_other_workers(
    undisturbed: Result, tmp_path: Path, search_folder: Path
) -> None:
    study = tmp_path / "study"
    command = [sys.executable, "-c", SEARCH, str(study), str(search_folder)]
    with subprocess.Popen(command, cwd=ROOT) as running:
        log = study.with_name("study-wal")
        while not log.exists() or log.stat().st_size < 50_000:
            time.sleep(0.02)
        running.kill()
    lock = len(Study.read(study))
    assert 0 < lock < SAMPLES
    _is_that_of(_search(study, search_folder, workers=2), study, undisturbed)


def test_a_disk_that_is_full_meanwhile(
    undisturbed: Result, tmp_path: Path, search_folder: Path
) -> None:
    study = tmp_path / "study"
    with (
        room_for(60_000),
        pytest.raises(SituateError, match=r"cannot be written .*; make room and start again"),
    ):
        _search(study, search_folder, workers=2)
    assert 0 < len(Study.read(study)) < SAMPLES
    _is_that_of(_search(study, search_folder, workers=1), study, undisturbed)


def test_a_study_that_another_search_writes_starts_no_worker(
    undisturbed: Result, tmp_path: Path, search_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = tmp_path / "study"
    _search(study, search_folder, workers=1)
    process: list[Any] = []
    monkeypatch.setattr(ProcessWorkers, "start", lambda self, worker: process.append(worker))
    with StudyFile(study, Study.read(study).header), pytest.raises(SituateError, match="in use"):
        _search(study, search_folder, workers=2)
    _is_that_of(_search(study, search_folder, workers=2), study, undisturbed)
    assert not process
