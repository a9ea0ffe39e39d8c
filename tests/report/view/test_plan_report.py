"""One plan of a report."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from situate.errors import ScheduleError
from situate.report import tables
from situate.report.view.plan_report import PlanReport, compared_reports
from situate.solvers import solve
from tests.report.handmade import chain
from tests.report.outcome import outcome


def test_a_result_has_the_figures_of_a_terminal() -> None:
    result = outcome(chain(4), [0, 0, 1, 1])
    report = PlanReport.of_result(result)
    assert [*report.figures] == tables.figures(result)
    assert (report.label, report.bounded_by) == ("heft", "load")


def test_a_plan_from_a_file_has_the_figures_of_its_result() -> None:
    result = solve(chain(4), "single")
    report = PlanReport.of_plan("mine", result.plan, result.problem, result.schedule)
    figures = dict(report.figures)
    expected = dict(tables.figures(result))
    assert report.bounded_by == result.bounded_by
    for label in (
        "makespan",
        "lower bound",
        "gap",
        "fits in memory",
        "devices used",
        "method",
        "rules",
    ):
        assert figures[label] == expected[label]


def test_the_bound_of_a_large_plan_has_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    result = solve(chain(4), "single")
    monkeypatch.setattr("situate.report.view.plan_report.MAX_NAMED_OPS", 3)
    report = PlanReport.of_plan("mine", result.plan, result.problem, result.schedule)
    assert report.bounded_by is None


def test_columns_hold_the_explanation_and_the_bound() -> None:
    _, plan = PlanReport.of_result(outcome(chain(4), [0, 0, 1, 1])).columns()
    assert any("critical path" in line for line in plan["explanation"])
    assert plan["bound"]["name"] == "load"
    assert plan["fits"]


def test_a_notebook_has_the_explanation_in_the_report_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    _, plan = PlanReport.of_result(outcome(chain(4), [0, 0, 1, 1])).columns()
    assert any("critical path" in line for line in plan["explanation"])
    assert capsys.readouterr() == ("", "")


def test_a_plan_that_does_not_fit_says_by_how_much() -> None:
    _, plan = PlanReport.of_result(outcome(chain(4, memory=100), [0, 0, 1, 1])).columns()
    assert not plan["fits"]
    assert "gpu0 by" in plan["over"]


def test_a_schedule_that_never_ends_has_no_columns() -> None:
    result = outcome(chain(1), [0])
    endless = replace(result, schedule=replace(result.schedule, makespan=math.inf))
    with pytest.raises(ScheduleError, match="never ends"):
        PlanReport.of_result(endless).columns()


# A comparison: the best plan has a row for each method, the second best is beside it.
def test_a_comparison_shows_the_best_two_and_a_row_for_each() -> None:
    results = [
        outcome(chain(4), placement, method=method)
        for method, placement in (
            ("far", [0, 1, 0, 1]),
            ("near", [0, 0, 0, 0]),
            ("two", [0, 0, 1, 1]),
        )
    ]
    reports = compared_reports(results)
    assert [report.label for report in reports] == ["near", "two"]
    assert [row.method for row in reports[0].methods] == ["near", "two", "far"]
    assert reports[1].methods == ()
