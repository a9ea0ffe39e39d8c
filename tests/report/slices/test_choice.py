"""Tables of the ways of cutting a batch that were tried."""

from __future__ import annotations

from situate.report.slices.choice import by_slices, choice_table
from situate.results.choice import Choice, SliceTrial
from situate.slicing.choice import choose
from situate.solvers import solve
from tests.report.test_tables import shown
from tests.slicing.steps import Captured


def chosen(method: str, **changes: object) -> Choice:
    def search(problem, seconds, evaluations):
        return solve(problem, method, evaluations=evaluations)

    return choose(Captured(**changes).cuts(), search, evaluations=200)


def rows(table: object) -> list[list[str]]:
    return [line.split() for line in shown(table).splitlines()]


def test_every_way_that_was_tried_has_a_row_and_the_reason_where_it_has_no_plan():
    choice = chosen("auto", launch=0.1)
    table = rows(choice_table(choice))
    assert [row[:1] for row in table[2:4]] == [["whole"], ["2"]]
    left_out = Choice(choice.result, (SliceTrial((1,) * 8, None, "too small"),), 0.0, "")
    assert ["8", "-", "-", "too", "small"] in rows(choice_table(left_out))


def test_methods_stand_beside_one_another_by_slices():
    table = rows(by_slices({name: chosen(name) for name in ("single", "data_parallel")}))
    assert table[0][:4] == ["by", "slices", "whole", "2"]
    assert [row[0] for row in table[1:3]] == ["data_parallel", "single"]
    assert table[1][1] == "-"
