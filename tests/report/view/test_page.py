"""The report in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from situate.data.cuts import parse_cuts
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.slices import Slices
from situate.report.view.document import page
from situate.report.view.plan_report import PlanReport
from tests.report.handmade import HOSTILE, chain
from tests.report.outcome import outcome
from tests.report.view.browser import Visit, chromium, unlike

SAME = 0.002
"""Largest share of pixels in which two equal pictures differ."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium("--disable-gpu", "--disable-3d-apis") as running:
        yield running


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Any:
    """Opens a page of reports; at the end nothing went wrong and nothing was loaded."""
    visits = []

    def open_page(*reports: PlanReport, max_bars: int = 400_000, **options: Any) -> Visit:
        path = tmp_path / f"{len(visits)}.html"
        path.write_bytes(page(reports, max_bars))
        visits.append(Visit(browser, path, **options))
        return visits[-1]

    yield open_page
    for one in visits:
        assert one.errors == []
        assert [url for url in one.requests if not url.startswith("file:")] == []


def _report(problem: Problem, placement: list[int], **fields: Any) -> PlanReport:
    return PlanReport.of_result(outcome(problem, placement, **fields))


def _pair() -> PlanReport:
    return _report(chain(6), [0, 0, 1, 1, 0, 0])


# It opens, with the figures of the plan.
def test_it_shows_the_plan_and_its_figures(visit: Any) -> None:
    one = visit(_pair())
    assert one.text("#title") == "chain on pair"
    assert "fits in memory" in one.text("#badges")
    assert "makespan" in one.text("#panel")
    assert "No plan that fits has a smaller value than 2.00 s." in one.text("#panel")


def test_its_timeline_is_not_empty(visit: Any) -> None:
    picture = visit(_pair()).picture()
    colors = {tuple(picture[i : i + 3]) for i in range(0, len(picture), 3)}
    assert {(86, 180, 233), (230, 159, 0), (0, 158, 115)} <= colors  # the three phases


def test_a_plan_that_does_not_fit_says_where(visit: Any) -> None:
    one = visit(_report(chain(6, memory=150), [0, 0, 1, 1, 0, 0]))
    assert "does not fit" in one.text("#badges")
    assert "gpu0 by" in one.text("h2")
    one.click("#tab-Why")
    assert "No single device would do" in one.text("pre")


# Moving: zoom and back give the same picture.
def test_zoom_and_fit_give_the_same_picture_again(visit: Any) -> None:
    one = visit(_pair())
    before = one.picture()
    one.press("+")
    one.press("ArrowRight")
    assert unlike(before, one.picture()) > 10 * SAME
    one.press("0")
    assert unlike(before, one.picture()) < SAME


def test_dragging_moves_the_view(visit: Any) -> None:
    one = visit(_pair())
    one.press("+")
    before = one.evaluate("window.situate.view.from")
    x, y = one.point(2)
    one.tab.mouse.move(x, y)
    one.tab.mouse.down()
    one.tab.mouse.move(x - 100, y, steps=4)
    one.tab.mouse.up()
    assert one.evaluate("window.situate.view.from") > before


def test_the_wheel_zooms_about_the_pointer(visit: Any) -> None:
    one = visit(_pair())
    x, y = one.point(2)
    one.hover(x, y)
    one.tab.mouse.wheel(0, -400)
    one._frames()
    assert one.evaluate("window.situate.view.span < 0.8 * window.situate.view.total")
    assert abs(one.point(2)[0] - x) < 3


# Pointing and choosing.
def test_hovering_an_op_shows_the_shapes_of_its_inputs(visit: Any) -> None:
    op = Op("mm", seconds={"*": 1.0}, signature="aten.mm(f32[8,64], f32[64,10])")
    one = visit(_report(Problem(Graph("mm", (op,)), chain(1).cluster), [0]))
    one.hover(*one.point(0))
    assert "f32[8,64], f32[64,10]" in one.text("#tip")


def test_hovering_an_op_says_what_it_is_and_why_it_waits(visit: Any) -> None:
    one = visit(_pair())
    one.hover(*one.point(2))
    tip = one.text("#tip")
    assert "op2" in tip
    assert "layer2" in tip
    assert "100 B" in tip
    assert "from op1 on gpu0: 1.00 s on the way" in tip


def test_an_op_that_waits_for_its_device_says_so(visit: Any) -> None:
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in "ab")
    problem = Problem(Graph("two", ops), chain(1).cluster)
    one = visit(_report(problem, [0, 0]))
    one.hover(*one.point(1))
    assert "Waits 1.00 s for its device, which ran a" in one.text("#tip")


def test_hovering_memory_lists_what_fills_it(visit: Any) -> None:
    one = visit(_pair())
    x, y = one.point(1)
    height = one.evaluate("window.situate.panes[0].rows[0].bar")
    one.hover(x, y + height)
    tip = one.text("#tip")
    assert "Memory of gpu0" in tip
    assert "t:op0" in tip
    assert "held for the step" in tip


def test_a_click_shows_inputs_and_outputs_and_their_links_lead_on(visit: Any) -> None:
    one = visit(_pair())
    one.click_at(*one.point(2))
    panel = one.text("#panel")
    assert "1 input" in panel
    assert "t:op1" in panel
    assert "1 output" in panel
    one.click("#panel .link >> nth=0")
    assert one.text("#panel h3") == "op1"


def test_keys_go_from_op_to_op_and_speak(visit: Any) -> None:
    one = visit(_pair())
    one.tab.focus("canvas[role=application]")
    one.press("n")
    first = one.text("#panel h3")
    one.press("n")
    second = one.text("#panel h3")
    assert (first, second) == ("op0", "op1")
    assert one.tab.inner_text("#spoken") == "op1, 1.00 s on gpu0"
    one.press("ArrowDown")
    assert "on gpu1" in one.tab.inner_text("#spoken")


# Switches and filters.
@pytest.mark.parametrize("key", ["c", "h"])
def test_switches_change_the_picture_and_back(visit: Any, key: str) -> None:
    one = visit(_report(chain(6), [0, 1, 0, 1, 0, 1]))
    before = one.picture()
    one.press(key)
    assert before != one.picture()
    one.press(key)
    assert unlike(before, one.picture()) < SAME


def test_a_slice_can_be_shown_alone(visit: Any) -> None:
    ops = tuple(Op(f"op{i}", seconds={"*": 1.0}, slice=i % 2, phase="forward") for i in range(4))
    graph = Graph("cut", ops, slices=Slices((1, 1)))
    one = visit(_report(Problem(graph, chain(1).cluster), [0, 0, 1, 1]))
    before = one.picture()
    one.tab.select_option("#toolbar select", "1")
    one._frames()
    assert unlike(before, one.picture()) > SAME
    one.press("Escape")
    assert unlike(before, one.picture()) < SAME


@pytest.mark.parametrize("division", ["replica", "part"])
def test_a_replica_or_a_part_can_be_shown_alone(visit: Any, division: str) -> None:
    numbers: list[dict[str, Any]] = [{division: i % 2} for i in range(4)]
    ops = [Op(f"op{i}", seconds={"*": 1.0}, phase="forward", **n) for i, n in enumerate(numbers)]
    graph = Graph(
        "cut", tuple(ops), slices=Slices((1, 1), replicas=(1, 1)), cuts=parse_cuts(["heads=2"])
    )
    one = visit(_report(Problem(graph, chain(1).cluster), [0, 0, 1, 1]))
    before = one.picture()
    one.tab.select_option(f"#toolbar select[aria-label='Show one {division}']", "1")
    one._frames()
    assert unlike(before, one.picture()) > SAME


def test_search_finds_ops_and_opens_them(visit: Any) -> None:
    one = visit(_pair())
    one.press("/")
    one.type("#search input", "LAYER4")
    assert "1 match" in one.text(".results")
    one.press("Enter")
    assert one.text("#panel h3") == "op4"


def test_the_module_tree_opens_and_searches(visit: Any) -> None:
    ops = [f"op{i}" for i in range(4)]
    problem = chain(4, names=ops)
    paths = ["net.a.x", "net.a.y", "net.b", "head"]
    graph = Graph(
        "deep",
        tuple(Op(o, seconds={"*": 1.0}, module=m) for o, m in zip(ops, paths, strict=True)),
        problem.graph.tensors,
    )
    one = visit(_report(Problem(graph, problem.cluster), [0, 0, 1, 1]))
    one.click("#tab-Modules")
    assert one.tab.locator("[role=treeitem]").count() == 3
    one.click("[role=treeitem] >> nth=1")
    assert one.tab.locator("[role=treeitem]").count() == 5
    one.type("#panel input", "a.y")
    assert "y" in one.text(".tree >> nth=0").split("\n")
    assert "head" not in one.text(".tree")


def test_the_cluster_and_the_explanation_are_there(visit: Any) -> None:
    one = visit(_pair())
    one.click("#tab-Cluster")
    assert one.tab.locator("svg .wire").count() == 2
    assert "gpu0 → gpu1" in one.text("#panel")
    one.click("#tab-Why")
    assert "critical path" in one.text("pre")


# Several plans.
def test_two_plans_share_the_axis_and_show_what_differs(visit: Any) -> None:
    first, other = _pair(), _report(chain(6), [0] * 6, method="single")
    one = visit(first, other)
    assert one.tab.locator("canvas[role=application]").count() == 2
    before = one.picture(1)
    one.press("+")
    assert unlike(before, one.picture(1)) > SAME
    one.click("#tab-Compare")
    panel = one.text("#panel")
    assert "single against heft" in panel
    assert "2 of 6 common ops are on another device." in panel
    assert "gpu1 → gpu0" in panel


# Names from models are shown, and do nothing.
ATTACKS = (
    *HOSTILE,
    "</script><script>window.hit=1;alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "\"><iframe srcdoc='<script>parent.hit=1</script>'>",
    "javascript:alert(1)",
    "{{constructor.constructor('alert(1)')()}}",
    "`${alert(1)}`",
    "__proto__",
    "constructor",
    "]]>\u2028\u2029\u202e\u2066",
)


def test_200_hostile_names_run_nothing(visit: Any) -> None:
    names = [f"{ATTACKS[i % len(ATTACKS)]}{i}" for i in range(200)]
    ops = tuple(
        Op(n, kind=n, seconds={"*": 1.0}, module=n, phase=n, persistent=1, dtype=n) for n in names
    )
    tensors = tuple(Tensor(f"t{n}", i, 100, (i + 1,)) for i, n in enumerate(names[:-1]))
    devices = chain(1, device_names=[names[0], names[8]]).cluster
    problem = Problem(Graph(names[8], ops, tensors), devices)
    one = visit(_report(problem, [i % 2 for i in range(200)], method=names[9]))
    for tab in ("Modules", "Cluster", "Why", "Plan"):
        one.click(f"#tab-{tab}")
    for op in (0, 8, 9, 10, 17):
        one.hover(*one.point(op))
        one.click_at(*one.point(op))
    one.press("/")
    one.type("#search input", "alert")
    assert one.evaluate("window.hit") is None
    assert one.evaluate("document.scripts.length") == 1
    assert one.tab.locator("img, iframe").count() == 0
    assert "\u202e" not in one.evaluate("document.documentElement.outerHTML")


# Bad inputs say what is wrong.
def test_many_ops_become_bars_and_the_page_says_so(visit: Any) -> None:
    one = visit(_report(chain(900), [i // 450 for i in range(900)]), max_bars=100)
    notice = one.text("#notice")
    assert "900 ops are shown as" in notice
    one.hover(*one.point(0))
    assert "more" in one.text("#tip strong")


def test_half_a_file_says_so(browser: Any, tmp_path: Path) -> None:
    content = page([_pair()])
    (tmp_path / "half.html").write_bytes(content[:-600])
    one = Visit(browser, tmp_path / "half.html")
    assert "This report cannot be shown" in one.text("#notice")


def test_a_browser_that_is_too_old_is_told(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "old.html").write_bytes(page([_pair()]))
    one = Visit(browser, tmp_path / "old.html", script="delete window.DecompressionStream")
    assert "needs a browser of 2023 or newer" in one.text("#notice")


# Looks.
def test_dark_and_light_differ_and_follow_the_system(visit: Any) -> None:
    dark = visit(_pair(), color_scheme="dark")
    light = visit(_pair(), color_scheme="light")
    assert unlike(dark.picture(), light.picture()) > 0.5
    light.click("#theme")
    assert unlike(dark.picture(), light.picture()) < SAME


def test_a_narrow_window_shows_everything_below_one_another(visit: Any) -> None:
    one = visit(_pair())
    one.tab.set_viewport_size({"width": 480, "height": 900})
    one._frames()
    assert one.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert one.tab.is_visible("#panel")


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_axe_has_no_serious_finding(visit: Any, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    reports = [_pair(), _report(chain(6, memory=150), [0] * 6)]
    # axe is a script of its own, which the page's policy would stop.
    one = visit(*reports, bypass_csp=True, color_scheme=scheme)
    one.click_at(*one.point(2))
    for tab in ("Details", "Plan", "Modules", "Cluster", "Why", "Compare"):
        one.click(f"#tab-{tab}")
        findings = axe.run(one.tab).response["violations"]
        assert [f["id"] for f in findings if f["impact"] in ("serious", "critical")] == []
