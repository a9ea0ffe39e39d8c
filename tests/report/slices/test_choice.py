"""Tables of the ways of cutting a batch that were tried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate.data.problem import Problem
from situate.data.slices import Slices
from situate.report.slices.choice import by_slices, choice_table, slicing_text
from situate.results.choice import Choice, SliceTrial
from situate.slicing.choice import choose
from situate.solvers import solve
from tests.report.test_tables import table_text
from tests.slicing.steps import Captured
from tests.solvers.families import apart, chain, devices


def choice_of(method: str, **changes: object) -> Choice:
    def search(problem, seconds, evaluations):
        return solve(problem, method, evaluations=evaluations)

    return choose(Captured(**changes).cuts(), search, evaluations=200)


def rows(table: object) -> list[list[str]]:
    return [line.split() for line in table_text(table).splitlines()]


def test_every_way_that_was_tried_has_a_row_and_the_reason_where_it_has_no_plan():
    choice = choice_of("auto", launch=0.1)
    table = rows(choice_table(choice))
    assert [row[:1] for row in table[2:4]] == [["whole"], ["2"]]
    left_out = Choice(choice.result, (SliceTrial((1,) * 8, None, "too small"),), 0.0, "")
    assert ["8", "-", "-", "too", "small"] in rows(choice_table(left_out))


def test_methods_stand_beside_one_another_by_slices():
    cells = rows(by_slices({name: choice_of(name) for name in ("single", "data_parallel")}))
    assert cells[0][:4] == ["by", "slices", "whole", "2"]
    assert [row[0] for row in cells[1:3]] == ["data_parallel", "single"]
    assert cells[1][1] == "-"


# Plans of whole batches say where slices might pay.
STEP = replace(chain(8), source="pytorch", optimizer="sgd")


def slicing_line(problem: Problem, method: str = "auto") -> str:
    return slicing_text(solve(problem, method, time_limit=None, evaluations=200))


def test_a_chain_of_ops_gains_what_its_devices_share():
    text = slicing_line(Problem(STEP, devices(1, 1)))
    assert "with --slices auto, the step may take 4.00 s at best" in text


def test_a_faster_device_counts_for_more():
    assert "may take 5.33 s at best" in slicing_line(Problem(STEP, devices(1, 2)))


@pytest.mark.parametrize(
    "graph",
    [
        replace(STEP, slices=Slices((1, 1))),
        replace(STEP, source="onnx"),
        replace(STEP, optimizer=""),
        replace(STEP, optimizer=None),
    ],
)
def test_what_is_no_whole_captured_training_step_is_not_told(graph):
    assert slicing_line(Problem(graph, devices(1, 1))) == ""


def test_a_plan_that_shares_already_and_one_device_are_not_told():
    shared = replace(apart(8), source="pytorch", optimizer="sgd")
    assert slicing_line(Problem(shared, devices(1, 1))) == ""
    assert slicing_line(Problem(STEP, devices(1))) == ""


def test_a_method_that_is_asked_for_is_left_alone():
    assert slicing_line(Problem(STEP, devices(1, 1)), "single") == ""
