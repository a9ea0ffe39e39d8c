"""Hours of the papers' searches, beside a virtual clock's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from research.papers.cases import Case
from research.papers.clocks import wall_times
from research.papers.pages import wall_times as page


def test_a_paper_s_hours_are_the_clock_s_and_what_setting_up_takes():
    pytest.importorskip("torch")
    case = Case("cifar_cnn", 4, "k80")
    search = wall_times.Timed("it took 3 hours", 3.0, case, "spotlight", 24, 1, 5)
    (one, several) = (
        wall_times.row(None, item)
        for item in (search, replace(search, method="colocrl", controllers=2))
    )
    for row, workers in ((one, 5), (several, 10)):
        assert row["clock_h"] > 0
        assert row["clock_h"] + row["setup_s"] * 24 / workers / 3600 == pytest.approx(3.0)
    table = page.fill({"tables": {"searches": [one, several]}})["table"]
    assert table.count("| it took 3 hours | cifar_cnn/4 | 24 |") == 2


def test_steps_that_take_longer_than_the_paper_leave_nothing_for_setting_up():
    row = {"paper": "", "case": "", "samples": 1, "workers": 1, "paper_h": 3.0, "clock_h": 4.0}
    table = page.fill({"tables": {"searches": [row | {"setup_s": -3600.0}]}})["table"]
    assert table.splitlines()[-1].endswith("| 3 | 4 | nothing left |")


def test_a_search_of_other_length_says_nothing_of_setting_up():
    case = Case("cifar_cnn", 4, "k80")
    search = wall_times.Timed("it took 3 hours", 3.0, case, "post", 24, 1, 12)
    assert wall_times.row(12, search)["setup_s"] is None
    assert wall_times.row(None, replace(search, counted=False))["setup_s"] is None
