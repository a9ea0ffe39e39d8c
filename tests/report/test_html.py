from __future__ import annotations

import math
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from situate.graph import Graph, Op
from situate.problem import Problem
from situate.report.html import to_html
from tests.report.handmade import HOSTILE, chain
from tests.report.outcome import outcome


def test_a_result_shows_its_figures_and_its_picture() -> None:
    html = to_html(outcome(chain(4), [0, 0, 1, 1]))
    for part in ("5.00 s", "150.0 %", "heft", "gpu0, gpu1", "<svg"):
        assert part in html


def test_it_holds_no_script_and_no_document_of_its_own() -> None:
    html = to_html(outcome(chain(4), [0, 0, 1, 1])).lower()
    assert not any(part in html for part in ("<script", "<?xml", "<!doctype", "javascript:"))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_escaped(name: str) -> None:
    problem = Problem(Graph(name, (Op(name, seconds={"*": 1.0}),)), chain(1).cluster)
    html = to_html(outcome(problem, [0], method=name))
    assert "<script" not in html
    ElementTree.fromstring(html)


def test_without_matplotlib_the_table_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    html = to_html(outcome(chain(4), [0, 0, 1, 1]))
    assert "<svg" not in html
    assert "5.00 s" in html


def test_a_schedule_that_never_ends_has_no_picture() -> None:
    result = outcome(chain(1), [0])
    endless = replace(result, schedule=replace(result.schedule, makespan=math.inf))
    assert "<svg" not in to_html(endless)
