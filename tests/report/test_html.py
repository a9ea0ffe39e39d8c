from __future__ import annotations

import math
import sys
import xml.etree.ElementTree as ElementTree
from base64 import b64decode
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import pytest

from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.report import tables
from situate.report.html import to_html
from situate.report.view.document import page
from situate.report.view.plan_report import PlanReport
from tests.report.handmade import HOSTILE, chain, schedule
from tests.report.outcome import Outcome, outcome
from tests.report.view.browser import chromium


def test_a_result_shows_its_figures_and_its_picture() -> None:
    html = to_html(outcome(chain(4), [0, 0, 1, 1]))
    for part in ("5.00 s", "150.0 %", "heft", "gpu0, gpu1", "<img"):
        assert part in html


class Disturbed(Outcome):
    """A step that is expected to take longer than planned."""

    expected = 6.0  # type: ignore[assignment]


def test_it_says_all_that_a_terminal_says() -> None:
    steady = replace(chain(4), objective="throughput")
    result: Any = Disturbed(steady, schedule(steady, [0, 0, 1, 1]), measured=5.5)
    html = to_html(result)
    for label, text in tables.figures(result):
        assert f">{label}</th>" in html
        assert label == "devices used" or escape(text) in html
    for label in ("expected here", "measured", "makespan", "memory counted"):
        assert f">{label}</th>" in html


def test_it_holds_no_script_and_no_document_of_its_own() -> None:
    html = to_html(outcome(chain(4), [0, 0, 1, 1])).lower()
    assert not any(part in html for part in ("<script", "<?xml", "<!doctype", "javascript:"))


def test_its_picture_styles_nothing_else_of_the_page_and_has_a_text_in_its_place() -> None:
    html = to_html(outcome(chain(4), [0, 0, 1, 1]))
    assert "<style" not in html
    assert " id=" not in html
    (image,) = ElementTree.fromstring(html).iter("img")
    assert "memory" in image.attrib["alt"]
    kind, _, content = image.attrib["src"].partition(",")
    assert kind == "data:image/svg+xml;base64"
    assert ElementTree.fromstring(b64decode(content)).tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_escaped(name: str) -> None:
    problem = Problem(Graph(name, (Op(name, seconds={"*": 1.0}),)), chain(1).cluster)
    html = to_html(outcome(problem, [0], method=name))
    assert "<script" not in html
    ElementTree.fromstring(html)


def test_without_matplotlib_the_table_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    html = to_html(outcome(chain(4), [0, 0, 1, 1]))
    assert "<img" not in html
    assert "5.00 s" in html


def test_a_schedule_that_never_ends_has_no_picture() -> None:
    result = outcome(chain(1), [0])
    endless = replace(result, schedule=replace(result.schedule, makespan=math.inf))
    assert "<img" not in to_html(endless)
    assert "<iframe" not in to_html(endless)


# The report of a browser stands behind a click, in a sandbox.
def test_the_report_is_a_page_in_a_sandbox_and_loads_when_it_is_opened() -> None:
    result = outcome(chain(4), [0, 0, 1, 1])
    (frame,) = ElementTree.fromstring(to_html(result)).iter("iframe")
    assert (frame.attrib["sandbox"], frame.attrib["loading"]) == ("allow-scripts", "lazy")
    kind, _, content = frame.attrib["src"].partition(",")
    assert kind == "data:text/html;base64"
    assert b64decode(content) == page([PlanReport.of_result(result)])


def test_a_large_step_says_how_to_write_its_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situate.report.html.MAX_OPS", 3)
    html = to_html(outcome(chain(4), [0, 0, 1, 1]))
    assert "<iframe" not in html
    assert "situate view" in html


def test_the_report_opens_within_another_page(tmp_path: Path) -> None:
    with chromium() as browser:
        (tmp_path / "notebook.html").write_text(to_html(outcome(chain(4), [0, 0, 1, 1])))
        tab = browser.new_page()
        tab.goto((tmp_path / "notebook.html").as_uri())
        tab.click("summary")
        frame = tab.frame_locator("iframe")
        frame.locator("body[data-state=shown]").wait_for()
        assert frame.locator("#title").inner_text() == "chain on pair"
