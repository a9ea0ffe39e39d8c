"""The report as one file."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from pathlib import Path

import pytest

from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.report.view.document import LIVE_SCRIPTS, SCRIPTS, live_page, page, write
from situate.report.view.plan_report import PlanReport
from tests.report.handmade import HOSTILE, chain
from tests.report.outcome import outcome
from tests.report.view.unpack import DATA, page_data

PAGE = Path(__file__).parents[3] / "src/situate/report/view/page"
BAD_PATTERNS = (
    *("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"),
    *("fetch(", "XMLHttpRequest", "WebSocket", "import(", "http://", "localStorage"),
)
"""Ways for a script to turn text into code or to reach a network."""


def _report(count: int = 4, **fields: object) -> PlanReport:
    placement = [2 * i // count for i in range(count)]
    return PlanReport.of_result(outcome(chain(count), placement, **fields))


# One file, which needs nothing else and runs only its own script.
def test_the_policy_allows_the_one_script_and_the_one_style_sheet() -> None:
    text = page([_report()]).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy.startswith("default-src 'none'; ")
    for tag, kind in (("script", "script-src"), ("style", "style-src")):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy
    assert "unsafe" not in policy


def test_the_page_of_searches_may_ask_its_own_server_alone() -> None:
    text = live_page().decode()
    assert "default-src 'none'; script-src 'sha256-" in text
    assert "connect-src 'self'; base-uri 'none'" in text


@pytest.mark.parametrize("name", ["report.html", "live.html"])
def test_no_markup_calls_a_script_or_loads_a_file(name: str) -> None:
    markup = (PAGE / name).read_text()
    assert not re.search(r"\son\w+=", markup)
    assert not re.search(r"\s(src|href|style)=", markup)


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_turns_text_into_code_or_reaches_a_network(name: str) -> None:
    script = (PAGE / f"{name}.js").read_text().replace("http://www.w3.org/2000/svg", "")
    assert not [pattern for pattern in BAD_PATTERNS if pattern in script]
    assert "</script" not in script


def test_every_script_of_the_folder_is_part_of_the_page() -> None:
    assert {path.stem for path in PAGE.glob("*.js")} == {*SCRIPTS, *LIVE_SCRIPTS}


# Names from models are never part of the markup.
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stand_in_the_data_alone(name: str) -> None:
    problem = Problem(Graph(name, (Op(name, seconds={"*": 1.0}, module=name),)), chain(1).cluster)
    report = PlanReport.of_result(outcome(problem, [0], method=name))
    ordinary = DATA.sub(b"", page([_report()]))
    assert DATA.sub(b"", page([report])) == ordinary


# Several plans in one page.
def test_plans_of_one_graph_share_its_columns() -> None:
    problem = chain(4)
    reports = [
        PlanReport.of_result(outcome(problem, placement)) for placement in ([0] * 4, [0, 0, 1, 1])
    ]
    content = page_data(page(reports))
    assert len(content["graphs"]) == 1
    assert [plan["graph"] for plan in content["plans"]] == [0, 0]
    assert content["differences"][0]["moved"] == 2


def test_plans_of_two_graphs_have_columns_each() -> None:
    content = page_data(page([_report(4), _report(6)]))
    assert [plan["graph"] for plan in content["plans"]] == [0, 1]


def test_many_ops_are_aggregated_and_the_page_knows_how_many() -> None:
    content = page_data(page([_report(600)], max_bars=100))
    assert content["graphs"][0]["count"] == 600
    assert content["plans"][0]["bars"] <= 100


def test_a_report_is_written_whole(tmp_path: Path) -> None:
    write([_report()], tmp_path / "plan.html")
    assert (tmp_path / "plan.html").read_bytes() == page([_report()])


def test_no_plan_is_an_error() -> None:
    with pytest.raises(SituateError, match="at least one plan"):
        page([])
