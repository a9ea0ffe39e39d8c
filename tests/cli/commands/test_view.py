"""`situate view`, and the reports of other commands."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest

from tests.report.view.unpack import page_data

QUICK = ("--evaluations", "200")


@pytest.fixture
def plan(situate, model, pair) -> str:
    situate("plan", model, "--cluster", pair, "--method", "single", "--out", "plan.json")
    return "plan.json"


# A report lies beside its plan, or where --out says.
def test_a_plan_of_a_file_comes_with_its_model(situate, model, pair, plan):
    run = situate("view", model, plan, "--cluster", pair)
    assert (run.status, run.err) == (0, "wrote plan.html\n")
    content = page_data(Path("plan.html").read_bytes())
    assert content["graphs"][0]["ops"]["name"] == ["a", "b", "c", "d"]
    assert content["plans"][0]["label"] == "plan"


def test_a_plan_of_the_zoo_needs_no_model(situate):
    situate(
        "plan", "inception_v3", "--cluster", "k80-2", "--method", "single", "--out", "plan.json"
    )
    assert situate("view", "plan.json", "--out", "x.html").status == 0
    assert Path("x.html").is_file()


def test_several_plans_are_side_by_side_with_their_differences(situate, model, pair, plan):
    situate("plan", model, "--cluster", pair, "--out", "best.json", *QUICK)
    run = situate("view", model, plan, "best.json", "--cluster", pair, "--out", "two.html")
    assert run.status == 0
    content = page_data(Path("two.html").read_bytes())
    assert [p["label"] for p in content["plans"]] == ["plan", "best"]
    assert content["differences"][0]["common"] == 4


def test_plans_of_two_cluster_files_find_their_own(situate, model, pair, plan):
    text = Path(pair).read_text()
    Path("other.toml").write_text(text.replace('name = "', 'name = "other-', 1))
    situate("plan", model, "--cluster", "other.toml", "--method", "single", "--out", "o.json")
    clusters = ("--cluster", "other.toml", "--cluster", pair)
    run = situate("view", model, plan, "o.json", *clusters, "--out", "two.html")
    assert run.status == 0
    content = page_data(Path("two.html").read_bytes())
    assert len({p["cluster"] for p in content["plans"]}) == 2


def test_open_shows_the_report_in_the_browser(situate, model, pair, plan, monkeypatch):
    shown = []
    monkeypatch.setattr(webbrowser, "open", lambda url: shown.append(url) or True)
    situate("view", model, plan, "--cluster", pair, "--open")
    assert shown == [Path("plan.html").resolve().as_uri()]


def test_without_a_browser_open_says_where_the_report_is(situate, model, pair, plan, monkeypatch):
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    run = situate("view", model, plan, "--cluster", pair, "--open")
    assert run.status == 0
    assert "found no browser: open plan.html yourself" in run.err


# Bad inputs have one line each.
def test_a_plan_of_another_model_is_refused(situate, fan, pair, plan):
    run = situate("view", fan, plan, "--cluster", pair)
    assert run.status == 2
    assert "the plan was made for graph 'diamond'" in run.err


def test_a_plan_without_its_graph_is_refused(situate, plan):
    run = situate("view", plan)
    assert run.status == 2
    assert run.err == "error: plan.json is a plan: give its model before it: MODEL plan.json\n"


def test_a_truncated_plan_is_refused(situate, model, plan):
    Path("cut.json").write_bytes(Path(plan).read_bytes()[:200])
    for arguments in (["cut.json"], [model, "cut.json"]):
        run = situate("view", *arguments)
        assert run.status == 2
        assert "cut.json: not a plan" in run.err
    assert not Path("cut.html").exists()


def test_a_model_alone_is_refused(situate):
    run = situate("view", "inception_v3")
    assert run.status == 2
    assert "give the plan too: situate view inception_v3 PLAN" in run.err


def test_a_file_that_is_no_report_is_not_overwritten(situate, model, pair, plan):
    Path("plan.html").write_text("my page")
    run = situate("view", model, plan, "--cluster", pair)
    assert run.status == 2
    assert "exists and is no report: give --out FILE" in run.err
    assert Path("plan.html").read_text() == "my page"


def test_a_report_of_another_ending_is_refused(situate, model, pair, plan):
    run = situate("view", model, plan, "--cluster", pair, "--out", "report.pdf")
    assert run.status == 2
    assert "must end in .html" in run.err


# Other commands write the same report.
def test_plan_and_explain_write_reports_with_the_name_of_the_bound(situate, model, pair):
    for command in ("plan", "explain"):
        run = situate(command, model, "--cluster", pair, "--report", f"{command}.html", *QUICK)
        assert f"wrote {command}.html" in run.err
        content = page_data(Path(f"{command}.html").read_bytes())
        assert content["plans"][0]["bound"]["name"]


def test_explain_reports_a_finished_plan(situate, model, pair, plan):
    run = situate("explain", model, plan, "--cluster", pair, "--report", "e.html")
    assert run.status == 0
    assert page_data(Path("e.html").read_bytes())["plans"][0]["makespan"] == 4.0


def test_compare_reports_the_best_two_and_all_methods(situate, model, pair):
    methods = ("--methods", "single,heft,metis")
    run = situate("compare", model, "--cluster", pair, *methods, "--report", "c.html", *QUICK)
    assert run.status == 0
    plans = page_data(Path("c.html").read_bytes())["plans"]
    assert len(plans) == 2
    assert len(plans[0]["methods"]) == 3


# Searches are served live.
def _served(monkeypatch) -> list[tuple]:
    """The arguments of each server, none of which starts."""
    calls = []
    monkeypatch.setattr("situate.cli.live.server.serve", lambda *call: calls.append(call))
    return calls


def test_progress_of_a_search_is_served(situate, model, pair, monkeypatch):
    served = []
    monkeypatch.setattr(
        "situate.cli.live.server.serve", lambda *arguments: served.append(arguments)
    )
    run = situate("plan", model, "--cluster", pair, "--progress", "run.jsonl", *QUICK)
    assert run.status == 0
    assert situate("view", "--serve", "run.jsonl", "--port", "8111").status == 0
    page, state, port, is_open = served[0]
    assert (port, is_open) == (8111, False)
    assert b"Searches" in page
    (section,) = state()["sections"]
    assert dict(section["figures"])["state"] == "ended"


def test_a_plan_is_served_without_a_file(situate, model, pair, plan, monkeypatch):
    served = []
    monkeypatch.setattr(
        "situate.cli.live.server.serve", lambda *arguments: served.append(arguments)
    )
    assert situate("view", model, plan, "--cluster", pair, "--serve").status == 0
    assert page_data(served[0][0])["plans"][0]["label"] == "plan"
    assert served[0][1] is None
    assert not Path("plan.html").exists()


def test_searches_have_no_other_report(situate, model, pair, plan):
    situate("plan", model, "--cluster", pair, "--progress", "run.jsonl", *QUICK)
    for arguments, message in (
        (["run.jsonl"], "run.jsonl is of a search and not a plan: add --serve"),
        (["run.jsonl", "--serve", "--out", "x.html"], "served, not written: leave it out"),
        (["run.jsonl", plan, "--serve"], "plan.json is not of a search like run.jsonl"),
    ):
        run = situate("view", *arguments)
        assert run.status == 2
        assert message in run.err


def test_a_file_of_progress_is_no_other_output(situate, model, pair):
    run = situate("plan", model, "--cluster", pair, "--progress", "x", "--out", "x")
    assert run.status == 2
    assert "it is used twice" in run.err


def test_a_finished_plan_has_no_progress(situate, model, pair, plan):
    run = situate("explain", model, plan, "--cluster", pair, "--progress", "x")
    assert run.status == 2
    assert "--progress: the plan is already made" in run.err
