"""Differences between plans."""

from __future__ import annotations

from situate.report.view.differences import differences
from situate.report.view.plan_report import PlanReport
from tests.report.handmade import chain
from tests.report.outcome import outcome


def _report(placement: list[int], **changes: object) -> PlanReport:
    return PlanReport.of_result(outcome(chain(len(placement), **changes), placement))


def test_a_plan_does_not_differ_from_itself() -> None:
    difference = differences(_report([0, 0, 1]), _report([0, 0, 1]))
    assert difference["same"]
    assert (difference["moved"], difference["common"], difference["modules"]) == (0, 3, [])


def test_ops_on_another_device_are_counted_by_module() -> None:
    difference = differences(_report([0, 0, 1]), _report([0, 1, 1]))
    assert not difference["same"]
    assert difference["moved"] == 1
    assert difference["modules"] == [["layer1", 1, 1.0, "gpu0", "gpu1"]]


def test_ops_of_only_one_plan_are_counted() -> None:
    difference = differences(_report([0, 0, 1]), _report([0, 0, 1, 1, 1]))
    assert (difference["common"], difference["only_first"], difference["only_other"]) == (3, 0, 2)
