"""Telemetry: copies of measurements, and the progress of workers and controllers."""

from __future__ import annotations

import numpy as np

from situate.data.problem import Problem
from situate.evaluators.measurements import Measurements
from situate.results.result import Asynchrony, Progress
from situate.solvers.learned.telemetry import Telemetry
from situate.solvers.search import Search
from tests.solvers.families import chain, devices

# A result has all measured seconds, whatever a learner does with its arrays later.


def test_stored_measurements_are_copies() -> None:
    telemetry, seconds = Telemetry(), np.array([1.0, 2.0])
    telemetry.add(Measurements(seconds, np.array([0, 1], np.uint8)))
    seconds[:] = 9.0
    assert telemetry.measurements[0].seconds.tolist() == [1.0, np.inf]


def test_progress_has_that_of_controllers() -> None:
    telemetry, reports = Telemetry(), list[Progress]()
    asynchrony = Asynchrony(1.0, {0: 2})
    telemetry.asynchrony = lambda: asynchrony
    on_progress = telemetry.reporting(reports.append)
    search = Search(Problem(chain(2), devices(1)), on_progress=on_progress)
    search.report()
    assert [report.asynchrony for report in reports] == [asynchrony]


def test_nobody_listens_to_no_callback() -> None:
    assert Telemetry().reporting(None) is None
